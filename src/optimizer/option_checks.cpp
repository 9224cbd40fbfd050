#include <algorithm>

#include "attn_opt/optimizer.h"
#include "src/io/check/nearest_name.h"
#include "src/optimizer/rewriting.h"
#include "src/optimizer/sites.h"

namespace attn_opt {
namespace {

constexpr std::string_view kAll = "all";

template <class Named>
std::vector<std::string> names_of(const std::vector<Named>& all) {
  std::vector<std::string> names;
  for (const auto& one : all) names.emplace_back(one->name());
  return names;
}

/// That NAME is one of KNOWN, which are each a KIND.
Status check_name(const std::string& option, const std::string& name, const std::string& kind,
                  const std::vector<std::string>& known) {
  if (contains(known, name)) return {};
  return fail(ErrorCode::kUsage, option, "there is no " + kind + " '" + name + "'", suggestion(name, known));
}

/// The names that --priority takes: patterns of attention and rewrites.
std::vector<std::string> all_names(const OptimizeOptions& options) {
  std::vector<std::string> names;
  for (const auto& some : {names_of(patterns()), names_of(options.rules), names_of(rewrites()), names_of(options.rewrites)})
    names.insert(names.end(), some.begin(), some.end());
  return names;
}

}  // namespace

Expected<std::vector<ChosenRewrite>> chosen_rewrites(const OptimizeOptions& options) {
  std::vector<const Rewrite*> built_in, all;
  for (const auto& rewrite : rewrites()) built_in.push_back(rewrite.get());
  for (const auto& rewrite : options.rewrites) all.push_back(rewrite.get());
  all.insert(all.end(), built_in.begin(), built_in.end());
  for (const std::string& name : options.also) {
    if (name == kAll) continue;
    ATTN_OPT_CHECK(check_name("--also", name, "rewrite", names_of(built_in)));
  }
  for (const auto& [name, priority] : options.priorities)
    ATTN_OPT_CHECK(check_name("--priority", name, "pattern or rewrite", all_names(options)));
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

Status check_opset(const OptimizeOptions& options) {
  const TargetRules& target = rules_of(options.emit.target);
  if (options.emit.stage != Stage::kAttention) return {};
  if (target.greatest_opset != 0 && options.opset > target.greatest_opset)
    return fail(ErrorCode::kUsage, "--opset",
                std::to_string(options.opset) + ", and --target " + std::string(target.name) + " runs none above " +
                    std::to_string(target.greatest_opset),
                "take --opset keep");
  if (options.opset != kOwnOpset || target.family == OperatorFamily::kMicrosoft) return {};
  return fail(ErrorCode::kUsage, "--opset", "keep, and --target " + std::string(target.name) + " writes Attention of opset 23",
              "take --opset 23, or --target ort-contrib");
}

Expected<AcceptedAssumptions> accepted_by(const OptimizeOptions& options) {
  AcceptedAssumptions accepted{.all = !options.assume && !options.strict && !options.exact, .refinements = !options.exact};
  if (!options.assume) return accepted;
  const std::vector<std::string> known(kPreconditionIds.begin(), kPreconditionIds.end());
  for (const std::string& id : *options.assume) {
    if (std::ranges::find(known, id) == known.end())
      return fail(ErrorCode::kUsage, "--assume", "there is no precondition '" + id + "'", suggestion(id, known));
    accepted.ids.insert(id);
  }
  return accepted;
}

}  // namespace attn_opt
