#include <algorithm>

#include "attn_opt/rewrite.h"

namespace attn_opt {
namespace {

std::vector<std::unique_ptr<Rewrite>>& registered() {
  static std::vector<std::unique_ptr<Rewrite>> all;
  return all;
}

}  // namespace

const std::vector<std::unique_ptr<Rewrite>>& rewrites() { return registered(); }

bool register_rewrite(std::unique_ptr<Rewrite> rewrite) {
  // Static initialisation has no order across files; names have one.
  auto& all = registered();
  all.insert(std::ranges::lower_bound(all, rewrite->name(), {}, [](const auto& one) { return one->name(); }),
             std::move(rewrite));
  return true;
}

Value* RewriteMatch::value(std::string_view name) const {
  const auto found = values.find(name);
  return found == values.end() ? nullptr : found->second;
}

double RewriteMatch::number(std::string_view name) const {
  const auto found = numbers.find(name);
  return found == numbers.end() ? 0 : found->second;
}

}  // namespace attn_opt
