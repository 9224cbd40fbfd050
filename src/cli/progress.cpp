#include "src/cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace attn_opt {
namespace {

using namespace std::chrono_literals;

constexpr int kBarWidth = 30, kBlockWidth = 5;

/// "[#########.....................]  30 %".
std::string bar(double part) {
  const int done = static_cast<int>(kBarWidth * part);
  return fmt::format("[{}{}] {:3d} %", std::string(static_cast<size_t>(done), '#'),
                     std::string(static_cast<size_t>(kBarWidth - done), '.'), static_cast<int>(100 * part));
}

/// A block that goes to and fro.
std::string moving_bar(int tick) {
  constexpr int kWay = kBarWidth - kBlockWidth;
  const int at = kWay - std::abs(tick % (2 * kWay) - kWay);
  return fmt::format("[{}{}{}]", std::string(static_cast<size_t>(at), '.'), std::string(kBlockWidth, '#'),
                     std::string(static_cast<size_t>(kWay - at), '.'));
}

}  // namespace

Progress::Progress(Mode mode)
    : on_terminal_(isatty(STDERR_FILENO) == 1),
      is_shown_(mode == Mode::kAlways || (mode == Mode::kAuto && on_terminal_)),
      mode_(mode) {
  if (is_shown_ && on_terminal_) drawing_ = std::thread([this] { draw_until_finished(); });
}

void Progress::update(std::string_view step, double part) {
  if (!is_shown_) return;
  const std::lock_guard lock(mutex_);
  if (step != step_) {
    step_ = step;
    step_begin_ = Clock::now();
  }
  part_ = part < 0 ? kUnknown : std::min(part, 1.0);
  if (!on_terminal_) print_line();
}

void Progress::print_line() {
  const auto now = Clock::now();
  std::string line = "attn-opt: " + step_ + (part_ < 0 ? "" : fmt::format(" {} %", static_cast<int>(100 * part_)));
  if (line == printed_ || (printed_.starts_with("attn-opt: " + step_) && now - printed_at_ < 1s)) return;
  std::fprintf(stderr, "%s\n", line.c_str());
  std::fflush(stderr);
  printed_ = std::move(line);
  printed_at_ = now;
}

void Progress::draw() {
  const auto taken = Clock::now() - step_begin_;
  const auto ticks = std::chrono::duration_cast<std::chrono::milliseconds>(taken) / 100ms;
  const std::string text = part_ < 0 ? moving_bar(static_cast<int>(ticks)) : bar(part_);
  const double seconds = std::chrono::duration<double>(taken).count();
  std::fprintf(stderr, "\r%s\033[K", fmt::format("attn-opt: {:<9} {} {:.0f} s", step_, text, seconds).c_str());
  std::fflush(stderr);
  is_drawn_ = true;
}

void Progress::draw_until_finished() {
  std::unique_lock lock(mutex_);
  if (mode_ == Mode::kAuto) changed_.wait_for(lock, 1s, [this] { return is_finished_; });
  while (!is_finished_) {
    if (!step_.empty()) draw();
    changed_.wait_for(lock, 100ms, [this] { return is_finished_; });
  }
}

void Progress::finish() {
  {
    const std::lock_guard lock(mutex_);
    is_finished_ = true;
  }
  changed_.notify_all();
  if (drawing_.joinable()) drawing_.join();
  if (is_drawn_) std::fputs("\r\033[K", stderr);
  is_drawn_ = false;
}

}  // namespace attn_opt
