// How far a long run is, on standard error: a bar on a terminal, lines elsewhere.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

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

  static constexpr double kUnknown = -1;
  /// PART of STEP is done, 0 to 1.
  void update(std::string_view step, double part = kUnknown);
  /// Clears the line. Before anything else is written.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  void print_line();
  void draw();
  void draw_until_finished();

  const bool on_terminal_, is_shown_;
  const Mode mode_;
  const Clock::time_point begin_ = Clock::now();
  std::mutex mutex_;  ///< guards what follows
  std::condition_variable changed_;
  Clock::time_point step_begin_ = begin_, printed_at_{};
  std::string step_, printed_;
  double part_ = kUnknown;
  bool is_finished_ = false, is_drawn_ = false;
  std::thread drawing_;  ///< a step that does not say how far it is shows that it goes on
};

}  // namespace attn_opt
