#include "src/report/miss_manual.h"

#include <algorithm>

#include "attn_opt/precondition.h"

namespace attn_opt {

extern const char* const kMissesManual;        // made from docs/misses.md
extern const char* const kVerificationManual;  // made from docs/verification.md

namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \n";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) + 1 - first);
}

std::string on_one_line(std::string_view text) {
  std::string line;
  for (const char c : trimmed(text)) {
    const char next = c == '\n' ? ' ' : c;
    if (next != ' ' || !line.ends_with(' ')) line += next;
  }
  return line;
}

/// What SECTION's list has behind "- NAME: ".
std::string item(std::string_view section, const std::string& name) {
  const std::string begin = "\n- " + name + ": ";
  const size_t found = section.find(begin);
  if (found == std::string_view::npos) return {};
  const std::string_view rest = section.substr(found + begin.size());
  return on_one_line(rest.substr(0, std::min(rest.find("\n- "), rest.find("\n\n"))));
}

}  // namespace

MissManual manual_of(std::string_view miss_id) {
  const std::string_view manual = kMissesManual;
  const std::string heading = "\n## " + std::string(miss_id) + "\n";
  const size_t found = manual.find(heading);
  if (found == std::string_view::npos) return {};
  const std::string_view below = manual.substr(found + heading.size());
  const std::string_view section = trimmed(below.substr(0, below.find("\n## ")));
  return {on_one_line(section.substr(0, section.find("\n\n"))), std::string(section), item(section, "Example"),
          item(section, "Remedy")};
}

namespace {

/// The first column of the table under "## Preconditions".
std::vector<std::string> ids_of_preconditions() {
  constexpr std::string_view kRow = "\n| `";
  const std::string_view manual = kVerificationManual;
  const std::string_view below = manual.substr(std::min(manual.find("\n## Preconditions\n"), manual.size()));
  const std::string_view table = below.substr(0, below.find("|\n\n"));
  std::vector<std::string> ids;
  for (size_t at = table.find(kRow); at != std::string_view::npos; at = table.find(kRow, at)) {
    at += kRow.size();
    ids.emplace_back(table.substr(at, table.find('`', at) - at));
  }
  return ids;
}

}  // namespace

std::string meaning_of_precondition(std::string_view id) {
  const std::string_view manual = kVerificationManual;
  const std::string begin = "\n| `" + std::string(id) + "` | ";
  const size_t found = manual.find(begin);
  if (found == std::string_view::npos) return {};
  const std::string_view row = manual.substr(found + begin.size());
  return std::string(row.substr(0, row.find(" |\n")));
}

std::vector<std::string> manual_ids() {
  constexpr std::string_view kHeading = "\n## ";
  const std::string_view manual = kMissesManual;
  std::vector<std::string> ids;
  for (size_t at = manual.find(kHeading); at != std::string_view::npos; at = manual.find(kHeading, at)) {
    at += kHeading.size();
    ids.emplace_back(manual.substr(at, manual.find('\n', at) - at));
  }
  for (std::string& id : ids_of_preconditions()) ids.push_back(std::move(id));
  return ids;
}

std::string manual_page(std::string_view id) {
  if (const std::string text = manual_of(id).text; !text.empty()) return without_marks(text);
  const std::string meaning = meaning_of_precondition(id);
  if (std::ranges::count(ids_of_preconditions(), id) == 0) return {};
  const std::string refused = id == kSizesNotEmpty ? "--exact refuses sites that assume it."
                                                   : "--strict refuses sites that assume it; --assume LIST says what may be.";
  return "A precondition: explain says of each site whether it is proven, refined or assumed.\n\nA site depends on it where: " +
         without_marks(meaning) + ".\n\n" + refused;
}

std::string without_marks(const std::string& text) {
  std::string plain = text;
  std::erase(plain, '`');
  return plain;
}

}  // namespace attn_opt
