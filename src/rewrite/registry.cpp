// What registers itself: patterns of attention and rewrites.
#include <algorithm>

#include "attn_opt/pattern.h"
#include "attn_opt/rewrite.h"

namespace attn_opt {
namespace {

template <class Registered>
std::vector<std::unique_ptr<Registered>>& registered() {
  static std::vector<std::unique_ptr<Registered>> all;
  return all;
}

/// Static initialisation has no order across files; names have one.
template <class Registered>
bool enter(std::unique_ptr<Registered> one) {
  auto& all = registered<Registered>();
  all.insert(std::ranges::lower_bound(all, one->name(), {}, [](const auto& other) { return other->name(); }), std::move(one));
  return true;
}

}  // namespace

const std::vector<std::unique_ptr<Pattern>>& patterns() { return registered<Pattern>(); }
bool register_pattern(std::unique_ptr<Pattern> pattern) { return enter(std::move(pattern)); }
const std::vector<std::unique_ptr<Rewrite>>& rewrites() { return registered<Rewrite>(); }
bool register_rewrite(std::unique_ptr<Rewrite> rewrite) { return enter(std::move(rewrite)); }

Value* RewriteMatch::value(std::string_view name) const {
  const auto found = values.find(name);
  return found == values.end() ? nullptr : found->second;
}

double RewriteMatch::number(std::string_view name) const {
  const auto found = numbers.find(name);
  return found == numbers.end() ? 0 : found->second;
}

}  // namespace attn_opt
