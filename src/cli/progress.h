// How far a long run is, on standard error.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace attn_opt {

class Progress {
 public:
  enum class Mode {
    kAuto,  ///< on a terminal, once the run has taken a second
    kAlways,
    kNever,
  };
  explicit Progress(Mode mode);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { finish(); }

  /// PART of STEP is done, 0 to 1.
  void update(std::string_view step, double part);
  /// Clears the line. Before anything else is written.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  bool on_terminal_;
  Mode mode_;
  Clock::time_point begin_ = Clock::now(), shown_at_{};
  std::string shown_;
};

}  // namespace attn_opt
