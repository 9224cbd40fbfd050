// com.microsoft::MultiHeadAttention.
//
//   Q (B, L, H*D), K (B, S, H*D), V (B, S, H*Dv), lengths int32 (B), bias (1 or B, 1 or H, L, S), past (B, H, P, D)
//
// Its fill of later keys is the lowest number, that of keys behind a length the attribute mask_filter_value.
#include <limits>

#include "src/emit/contrib_operators.h"

namespace attn_opt {
namespace {

/// Rows that are 0 without a key are found by the mask, which lengths are a part of then.
KeySayings multi_head_sayings(const WritingPlan&, const Site& site) {
  const ContribRules& takes = site.target.contrib;
  return {
      .lengths = takes.multi_head_lengths && !site.sdpa.guarded, .causal = takes.multi_head_causal, .hides_later_keys = false};
}

bool repeats_heads(const Operand& operand) {
  return std::ranges::any_of(operand.views, [](const OperandView& view) { return !view.axes.size(Role::kHead, true).is(1); });
}

/// The model's own copies of shared heads are not taken: what it reads must lie (B, S, H*D), and turning all the copies takes
/// more than the operator gains (docs/runtimes.md).
Matched<void> check_multi_head(const WritingPlan& plan, Site& site) {
  const Sdpa& sdpa = site.sdpa;
  if (sdpa.is_causal && !site.says.causal)
    return beyond_contrib(site, "causal, which MultiHeadAttention is not for this target");
  if (sdpa.nonpad_kv_seqlen && !site.target.contrib.multi_head_lengths)
    return beyond_contrib(site, "lengths of sequences, which MultiHeadAttention has not for this target");
  if (repeats_heads(sdpa.k))
    return beyond_contrib(site, "query heads share those of K and V, which GroupQueryAttention does not take as they are here");
  if (plan.has_past && (!head_size(*plan.v) || head_size(*plan.k) != head_size(*plan.v)))
    return beyond_contrib(site, "a past of keys and of values of different sizes");
  return check_contrib(plan, site);
}

Matched<void> check_multi_head_masks(const WritingPlan&, const Causality& causality, Site& site) {
  if (site.sdpa.is_causal && !causality.masks.empty())
    return beyond_contrib(site, "causal beside '" + causality.masks.front()->value->name + "', which may mask all other keys");
  return site.sdpa.nonpad_kv_seqlen ? check_empty_rows(causality, site) : Matched<void>{};
}

Matched<Node*> write_multi_head(const NodeParts& parts, Site& site) {
  const auto& [q, k, v, scale] = parts.operands;
  GraphBuilder::Attributes attributes{GraphBuilder::attribute("num_heads", site.sdpa.query_heads.value()),
                                      GraphBuilder::attribute("scale", scale)};
  if (parts.rules.is_causal) attributes.emplace_back(GraphBuilder::attribute("unidirectional", int64_t{1}));
  if (parts.lengths)
    attributes.emplace_back(GraphBuilder::attribute("mask_filter_value", -std::numeric_limits<float>::infinity()));
  const std::vector<Value*> given = inputs_of(parts);
  Value* const lengths = parts.lengths ? as_int32(parts.lengths, site) : nullptr;
  Value* const no_bias = nullptr;
  return write_node("com.microsoft::MultiHeadAttention",
                    {q.value, k.value, v.value, no_bias, lengths, parts.mask, given[4], given[5]}, attributes, parts, site);
}

}  // namespace

const AttentionOperator kMultiHeadAttention{multi_head_sayings, check_multi_head, check_multi_head_masks, write_multi_head,
                                            with_empty_rows_zero};

}  // namespace attn_opt
