#include "src/cli/color.h"

#include <unistd.h>

#include <cstdlib>
#include <map>
#include <sstream>
#include <string_view>

namespace attn_opt {
namespace {

ColorMode g_mode = ColorMode::kAuto;

bool takes_color(std::FILE* stream) {
  if (g_mode != ColorMode::kAuto) return g_mode == ColorMode::kAlways;
  const char *no_color = std::getenv("NO_COLOR"), *terminal = std::getenv("TERM");
  if (no_color != nullptr && *no_color != '\0') return false;
  if (terminal == nullptr || std::string_view(terminal) == "dumb") return false;
  return isatty(fileno(stream)) == 1;
}

constexpr std::string_view kGreen = "\033[32m", kYellow = "\033[33m", kRed = "\033[31m", kPlain = "\033[0m";

std::string_view color_of(std::string_view word) {
  static const std::map<std::string_view, std::string_view> kColors = {
      {"fused", kGreen},    {"verified", kGreen}, {"pass", kGreen},     {"agrees", kGreen},
      {"done", kGreen},     {"proven", kGreen},   {"refused", kYellow}, {"unverified", kYellow},
      {"assumed", kYellow}, {"refined", kYellow}, {"missed", kRed},     {"failed", kRed},
      {"FAIL", kRed},       {"differs", kRed},    {"status", kRed},     {"stopped", kRed}};
  const auto color = kColors.find(word);
  return color == kColors.end() ? std::string_view() : color->second;
}

std::string colored(std::string_view word, std::string_view color) {
  return std::string(color) + std::string(word) + std::string(kPlain);
}

/// A word of outcome begins a line, or follows two blanks or a "] "; the first of a line counts.
std::string painted_line(const std::string& line) {
  for (size_t begin = 0; begin < line.size();) {
    const size_t end = std::min(line.find(' ', begin), line.size());
    const std::string_view word = std::string_view(line).substr(begin, end - begin);
    const bool stands_apart =
        begin == 0 || (begin >= 2 && line[begin - 1] == ' ' && (line[begin - 2] == ' ' || line[begin - 2] == ']'));
    if (const auto color = color_of(word); stands_apart && !color.empty())
      return line.substr(0, begin) + colored(word, color) + line.substr(end);
    begin = line.find_first_not_of(' ', end);
    if (begin == std::string::npos) break;
  }
  return line;
}

}  // namespace

void set_color(ColorMode mode) { g_mode = mode; }

std::string painted(const std::string& text, std::FILE* stream) {
  if (!takes_color(stream)) return text;
  std::istringstream lines(text);
  std::string result;
  for (std::string line; std::getline(lines, line);) result += painted_line(line) + "\n";
  if (!text.empty() && text.back() != '\n') result.pop_back();
  return result;
}

std::string painted_error_begin() {
  constexpr std::string_view kBegin = "attn-opt:";
  return (takes_color(stderr) ? colored(kBegin, kRed) : std::string(kBegin)) + " ";
}

}  // namespace attn_opt
