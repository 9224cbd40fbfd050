#include <algorithm>

#include "src/io/check/nearest_name.h"
#include "src/optimizer/rewriting.h"
#include "src/optimizer/sites.h"

namespace attn_opt {
namespace {

constexpr std::string_view kAll = "all";

Status check_name(const std::string& option, const std::string& name, const std::vector<const Rewrite*>& known) {
  if (std::ranges::any_of(known, [&](const Rewrite* rewrite) { return rewrite->name() == name; })) return {};
  std::vector<std::string> names;
  for (const Rewrite* rewrite : known) names.emplace_back(rewrite->name());
  return fail(ErrorCode::kUsage, option, "there is no rewrite '" + name + "'", suggestion(name, names));
}

}  // namespace

Expected<std::vector<ChosenRewrite>> chosen_rewrites(const OptimizeOptions& options) {
  std::vector<const Rewrite*> built_in, all;
  for (const auto& rewrite : rewrites()) built_in.push_back(rewrite.get());
  for (const auto& rewrite : options.rewrites) all.push_back(rewrite.get());
  all.insert(all.end(), built_in.begin(), built_in.end());
  for (const std::string& name : options.also) {
    if (name == kAll) continue;
    ATTN_OPT_CHECK(check_name("--also", name, built_in));
  }
  for (const auto& [name, priority] : options.priorities) ATTN_OPT_CHECK(check_name("--priority", name, all));
  std::vector<ChosenRewrite> chosen;
  for (size_t i = 0; i < all.size(); ++i) {
    const Rewrite& rewrite = *all[i];
    const bool is_given = i < options.rewrites.size();
    const bool is_only = contains(options.only, rewrite.name());
    const bool is_on = is_only || ((is_given || contains(options.also, rewrite.name()) || contains(options.also, kAll)) &&
                                   options.only.empty());
    if (!is_on || contains(options.disable, rewrite.name())) continue;
    const auto priority = options.priorities.find(std::string(rewrite.name()));
    chosen.push_back({&rewrite, priority == options.priorities.end() ? rewrite.priority() : priority->second});
  }
  std::ranges::stable_sort(chosen, std::ranges::greater(), &ChosenRewrite::priority);
  return chosen;
}

}  // namespace attn_opt
