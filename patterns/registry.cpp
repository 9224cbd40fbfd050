#include <algorithm>

#include "attn_opt/pattern.h"

namespace attn_opt {
namespace {

std::vector<std::unique_ptr<Pattern>>& registered() {
  static std::vector<std::unique_ptr<Pattern>> all;
  return all;
}

}  // namespace

const std::vector<std::unique_ptr<Pattern>>& patterns() { return registered(); }

bool register_pattern(std::unique_ptr<Pattern> pattern) {
  // Static initialisation has no order across files; names have one.
  auto& all = registered();
  const auto place =
      std::lower_bound(all.begin(), all.end(), pattern, [](const auto& a, const auto& b) { return a->name() < b->name(); });
  all.insert(place, std::move(pattern));
  return true;
}

}  // namespace attn_opt
