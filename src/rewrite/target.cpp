#include "attn_opt/target.h"

#include <algorithm>
#include <array>

namespace attn_opt {
namespace {

// In the order of Target.
constexpr std::array<TargetRules, 8> kRules = {{
    {.name = "portable",
     .takes_double = true,
     .takes_bool_masks = true,
     .takes_masks_of_few_axes = true,
     .broadcasts_masks = true,
     .shows_scores = true,
     .folds_linear_masks = true},
    {.name = "spec",
     .takes_bfloat16 = true,
     .takes_double = true,
     .takes_bool_masks = true,
     .broadcasts_mask_rows = true,
     .takes_rank_1_masks = true,
     .takes_masks_of_few_axes = true,
     .broadcasts_masks = true,
     .takes_short_masks = true,
     .tells_lowest_from_infinity = true,
     .counts_causal_from_past = true,
     .shows_scores = true,
     .shows_masked_scores = true,
     .takes_any_length = true,
     .takes_past_without_present = true,
     .takes_empty_sizes = true,
     .infers_shared_heads = true,
     .infers_ranks_in_loops = true,
     .takes_moved_int8 = true,
     .takes_static_caches = true,
     .has_windows = true},
    {.name = "ort",
     .takes_double = true,
     .takes_bool_masks = true,
     .takes_masks_of_few_axes = true,
     .broadcasts_masks = true,
     .counts_causal_from_past = true,
     .one_query_sees_all = true,
     .shows_scores = true,
     .infers_shared_heads = true,
     .infers_ranks_in_loops = true,
     .takes_static_caches = true,
     .faster = Target::kOrtContrib},
    {.name = "openvino",
     .takes_double = true,
     .takes_bool_masks = true,
     .broadcasts_mask_rows = true,
     .takes_masks_of_few_axes = true,
     .broadcasts_masks = true,
     .takes_short_masks = true,
     .tells_lowest_from_infinity = true,
     .shows_scores = true,
     .takes_past_without_present = true,
     .folds_linear_masks = true,
     .takes_moved_int8 = true},
    {.name = "ort-contrib",
     .family = OperatorFamily::kMicrosoft,
     .broadcasts_masks = true,
     .takes_static_caches = true,
     .has_windows = true,
     .contrib = {.multi_head_causal = true,
                 .multi_head_lengths = true,
                 .grouped_bias = true,
                 .grouped_softcap = true,
                 .grouped_past = true,
                 .not_causal = true,
                 .query_counts = true}},
    {.name = "cuda",
     .takes_bfloat16 = true,
     .takes_bool_masks = true,
     .takes_masks_of_few_axes = true,
     .broadcasts_masks = true,
     .infers_ranks_in_loops = true},
    {.name = "directml", .family = OperatorFamily::kMicrosoft, .keeps_opset = true, .greatest_opset = 20},
    {.name = "webgpu",
     .family = OperatorFamily::kMicrosoft,
     .broadcasts_masks = true,
     .has_windows = true,
     .keeps_opset = true,
     .contrib = {.grouped_bias = true, .grouped_softcap = true, .grouped_past = true}},
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
  names.reserve(kRules.size());
  for (const TargetRules& rules : kRules) names.emplace_back(rules.name);
  return names;
}

}  // namespace attn_opt
