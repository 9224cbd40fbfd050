#include "attn_opt/target.h"

#include <algorithm>
#include <array>

namespace attn_opt {
namespace {

// In the order of Target.
constexpr std::array<TargetRules, 5> kRules = {{
    {.name = "portable",
     .family = OperatorFamily::kOnnx,
     .takes_bfloat16 = false,
     .takes_double = true,
     .takes_bool_masks = true,
     .broadcasts_mask_rows = false,
     .takes_rank_1_masks = false,
     .takes_masks_of_few_axes = true,
     .takes_short_masks = false,
     .tells_lowest_from_infinity = false,
     .counts_causal_from_past = false,
     .shows_masked_scores = false,
     .takes_any_length = false,
     .takes_past_without_present = false,
     .takes_empty_sizes = false,
     .infers_shared_heads = false,
     .folds_linear_masks = true,
     .has_windows = false},
    {.name = "spec",
     .family = OperatorFamily::kOnnx,
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
     .folds_linear_masks = false,
     .has_windows = true},
    {.name = "ort",
     .family = OperatorFamily::kOnnx,
     .takes_bfloat16 = false,
     .takes_double = true,
     .takes_bool_masks = true,
     .broadcasts_mask_rows = false,
     .takes_rank_1_masks = false,
     .takes_masks_of_few_axes = true,
     .takes_short_masks = false,
     .tells_lowest_from_infinity = false,
     .counts_causal_from_past = true,
     .shows_masked_scores = false,
     .takes_any_length = false,
     .takes_past_without_present = false,
     .takes_empty_sizes = false,
     .infers_shared_heads = true,
     .folds_linear_masks = false,
     .has_windows = false},
    {.name = "openvino",
     .family = OperatorFamily::kOnnx,
     .takes_bfloat16 = false,
     .takes_double = true,
     .takes_bool_masks = true,
     .broadcasts_mask_rows = true,
     .takes_rank_1_masks = false,
     .takes_masks_of_few_axes = true,
     .takes_short_masks = true,
     .tells_lowest_from_infinity = true,
     .counts_causal_from_past = false,
     .shows_masked_scores = false,
     .takes_any_length = false,
     .takes_past_without_present = true,
     .takes_empty_sizes = false,
     .infers_shared_heads = false,
     .folds_linear_masks = true,
     .has_windows = false},
    {.name = "ort-contrib",
     .family = OperatorFamily::kMicrosoft,
     .takes_bfloat16 = false,
     .takes_double = false,
     .takes_bool_masks = false,
     .broadcasts_mask_rows = false,
     .takes_rank_1_masks = false,
     .takes_masks_of_few_axes = false,
     .takes_short_masks = false,
     .tells_lowest_from_infinity = false,
     .counts_causal_from_past = false,
     .shows_masked_scores = false,
     .takes_any_length = false,
     .takes_past_without_present = false,
     .takes_empty_sizes = false,
     .infers_shared_heads = false,
     .folds_linear_masks = false,
     .has_windows = true},
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
