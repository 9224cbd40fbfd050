// How much of an output is written.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

namespace attn_opt {

class WriteProgress {
 public:
  /// TELL, which may be empty and must outlive it, hears the part that is written, 0 to 1.
  explicit WriteProgress(const std::function<void(double part)>& tell) : tell_(tell) {}

  /// About so many more bytes are to be written.
  void expect(uint64_t bytes) { expected_ += static_cast<double>(bytes); }
  void add(uint64_t bytes) {
    written_ += static_cast<double>(bytes);
    if (tell_ && expected_ > 0) tell_(std::min(written_ / expected_, 1.0));
  }

 private:
  double expected_ = 0, written_ = 0;
  const std::function<void(double part)>& tell_;
};

}  // namespace attn_opt
