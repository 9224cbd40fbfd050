#include "src/cli/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace attn_opt {

Progress::Progress(Mode mode) : on_terminal_(isatty(STDERR_FILENO) == 1), mode_(mode) {}

void Progress::update(std::string_view step, double part) {
  using namespace std::chrono_literals;
  if (mode_ == Mode::kNever || (mode_ == Mode::kAuto && !on_terminal_)) return;
  const auto now = Clock::now();
  if (mode_ == Mode::kAuto && now - begin_ < 1s) return;
  if (!shown_.empty() && now - shown_at_ < (on_terminal_ ? 100ms : 1000ms)) return;
  const int percent = static_cast<int>(100 * std::clamp(part, 0.0, 1.0));
  std::string line = "attn-opt: " + std::string(step) + " " + std::to_string(percent) + " %";
  if (line == shown_) return;
  std::fprintf(stderr, on_terminal_ ? "\r%s\033[K" : "%s\n", line.c_str());
  std::fflush(stderr);
  shown_ = std::move(line);
  shown_at_ = now;
}

void Progress::finish() {
  if (on_terminal_ && !shown_.empty()) std::fputs("\r\033[K", stderr);
  shown_.clear();
}

}  // namespace attn_opt
