// The bytes of a model for a pass from front to back.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "src/io/file.h"

namespace attn_opt {

/// Memory, or a file that is read through a small window: what the pass skips is neither read nor mapped.
class WireSource {
 public:
  explicit WireSource(std::span<const std::byte> bytes) : size_(bytes.size()), window_(bytes) {}
  /// FILE must outlive the source.
  explicit WireSource(const FileBytes& file);

  uint64_t size() const { return size_; }

  /// COUNT bytes (at most kWindow) from AT on, or as many as there are to the end. Fewer after a failed read.
  std::span<const std::byte> peek(uint64_t at, size_t count) {
    if (at < window_at_ || at + count > window_at_ + window_.size()) fill(at);
    if (at < window_at_ || at - window_at_ >= window_.size()) return {};
    const auto rest = window_.subspan(at - window_at_);
    return rest.first(std::min(count, rest.size()));
  }

  /// Appends SIZE bytes from AT on to TEXT. Returns 0 or an errno value.
  int append_to(std::string& text, uint64_t at, uint64_t size) const;

  /// Has a read failed? An errno value, or 0.
  int failure() const { return failure_; }

 private:
  static constexpr size_t kWindow = 8192;
  void fill(uint64_t at);

  const FileBytes* file_ = nullptr;
  uint64_t size_ = 0;
  std::string buffer_;
  uint64_t window_at_ = 0;
  std::span<const std::byte> window_;
  int failure_ = 0;
};

}  // namespace attn_opt
