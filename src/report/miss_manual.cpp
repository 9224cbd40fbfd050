#include "src/report/miss_manual.h"

#include <algorithm>

namespace attn_opt {

extern const char* const kMissesManual;  // made from docs/misses.md

namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \n";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) + 1 - first);
}

}  // namespace

MissManual manual_of(std::string_view miss_id) {
  const std::string_view manual = kMissesManual;
  const std::string heading = "\n## " + std::string(miss_id) + "\n";
  const size_t found = manual.find(heading);
  if (found == std::string_view::npos) return {};
  const std::string_view below = manual.substr(found + heading.size());
  const std::string_view section = trimmed(below.substr(0, below.find("\n## ")));
  std::string meaning(section.substr(0, section.find("\n\n")));
  std::ranges::replace(meaning, '\n', ' ');
  return {std::move(meaning), std::string(section)};
}

std::vector<std::string> manual_ids() {
  constexpr std::string_view kHeading = "\n## ";
  const std::string_view manual = kMissesManual;
  std::vector<std::string> ids;
  for (size_t at = manual.find(kHeading); at != std::string_view::npos; at = manual.find(kHeading, at)) {
    at += kHeading.size();
    ids.emplace_back(manual.substr(at, manual.find('\n', at) - at));
  }
  return ids;
}

std::string without_marks(const std::string& text) {
  std::string plain = text;
  std::erase(plain, '`');
  return plain;
}

}  // namespace attn_opt
