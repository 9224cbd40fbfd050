#include "attn_opt/target.h"

#include <algorithm>
#include <array>

namespace attn_opt {
namespace {

// In the order of Target.
constexpr std::array<TargetRules, 5> kRules = {{
    {.name = "portable",
     .takes_double = true,
     .takes_bool_masks = true,
     .takes_masks_of_few_axes = true,
     .folds_linear_masks = true},
    {.name = "spec",
     .takes_bfloat16 = true,
     .takes_double = true,
     .takes_bool_masks = true,
     .broadcasts_mask_rows = true,
     .takes_rank_1_masks = true,
     .takes_masks_of_few_axes = true,
     .takes_short_masks = true,
     .tells_lowest_from_infinity = true,
     .counts_causal_from_past = true,
     .shows_masked_scores = true,
     .takes_any_length = true,
     .takes_past_without_present = true,
     .takes_empty_sizes = true,
     .infers_shared_heads = true,
     .has_windows = true},
    {.name = "ort",
     .takes_double = true,
     .takes_bool_masks = true,
     .takes_masks_of_few_axes = true,
     .counts_causal_from_past = true,
     .infers_shared_heads = true},
    {.name = "openvino",
     .takes_double = true,
     .takes_bool_masks = true,
     .broadcasts_mask_rows = true,
     .takes_masks_of_few_axes = true,
     .takes_short_masks = true,
     .tells_lowest_from_infinity = true,
     .takes_past_without_present = true,
     .folds_linear_masks = true},
    {.name = "ort-contrib", .family = OperatorFamily::kMicrosoft, .has_windows = true},
}};

}  // namespace

const TargetRules& rules_of(Target target) { return kRules[static_cast<size_t>(target)]; }

std::optional<Target> target_named(std::string_view name) {
  const auto row = std::ranges::find(kRules, name, &TargetRules::name);
  if (row == kRules.end()) return std::nullopt;
  return static_cast<Target>(row - kRules.begin());
}

std::vector<std::string> target_names() {
  std::vector<std::string> names;
  for (const TargetRules& rules : kRules) names.emplace_back(rules.name);
  return names;
}

}  // namespace attn_opt
