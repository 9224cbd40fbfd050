#include "src/report/drawing/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <sstream>
#include <string_view>

namespace attn_opt {
namespace {

/// Names come from files: they must not steer a terminal.
bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < ' ' || byte == 0x7f;
}

/// Does C continue a character of UTF-8?
bool continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

}  // namespace

std::string printable(const std::string& text) {
  std::string line = text;
  std::ranges::replace_if(line, is_control, '?');
  return line;
}

std::string elided(const std::string& text, size_t width) {
  std::string line = printable(text);
  constexpr std::string_view kGap = "...";
  if (line.size() <= width) return line;
  const size_t kept = width - kGap.size();
  size_t tail = kept * 2 / 3, head = kept - tail;
  while (head > 0 && continues(line[head])) --head;
  while (tail > 0 && continues(line[line.size() - tail])) --tail;
  return line.substr(0, head) + std::string(kGap) + line.substr(line.size() - tail);
}

std::string wrapped(const std::string& text, size_t indent) {
  std::string lines, line;
  const auto flush = [&] {
    if (!line.empty()) lines += std::string(indent, ' ') + line + "\n";
    line.clear();
  };
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    std::ranges::replace_if(word, is_control, '?');
    if (!line.empty() && indent + line.size() + 1 + word.size() > kColumns) flush();
    line += (line.empty() ? "" : " ") + word;
  }
  flush();
  return lines;
}

std::string rounded_bytes(int64_t bytes) {
  static constexpr const char* kUnits[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
  auto amount = static_cast<double>(bytes);
  size_t unit = 0;
  while (amount >= 1000 && unit + 1 < std::size(kUnits)) {
    amount /= 1000;
    ++unit;
  }
  return fmt::format("{:.3g} {}", amount, kUnits[unit]);
}

std::string joined(const std::vector<std::string>& parts, const std::string& separator) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : separator) + part;
  return text;
}

}  // namespace attn_opt
