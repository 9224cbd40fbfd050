#include "src/io/check/nearest_name.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace attn_opt {
namespace {

/// Insertions, deletions and replacements of a character that lead from A to B.
size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, replaced}));
    }
  }
  return row.back();
}

}  // namespace

std::optional<std::string> nearest_name(const std::string& name, const std::vector<std::string>& known) {
  if (known.empty()) return std::nullopt;
  constexpr size_t kLongestCompared = 200;
  const auto distance = [&](const std::string& candidate) {
    return edit_distance(name.substr(0, kLongestCompared), candidate.substr(0, kLongestCompared));
  };
  const std::string* nearest = &known.front();
  size_t least = distance(*nearest);
  for (const std::string& candidate : known) {
    if (const size_t apart = distance(candidate); apart < least) {
      least = apart;
      nearest = &candidate;
    }
  }
  if (least > std::max<size_t>(1, (nearest->size() + 1) / 3)) return std::nullopt;
  return *nearest;
}

std::string suggestion(const std::string& name, const std::vector<std::string>& known) {
  if (known.empty()) return "there are none";
  if (const auto nearest = nearest_name(name, known)) return "did you mean '" + *nearest + "'?";
  constexpr size_t kMostListed = 20;
  std::string list;
  for (size_t i = 0; i < std::min(known.size(), kMostListed); ++i) list += (i == 0 ? "" : ", ") + known[i];
  return "there are " + list + (known.size() > kMostListed ? ", ..." : "");
}

}  // namespace attn_opt
