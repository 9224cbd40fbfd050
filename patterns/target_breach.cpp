#include "patterns/target_breach.h"

#include "attn_opt/target.h"
#include "src/graph/attention_inputs.h"

namespace attn_opt {
namespace {

std::string mask_breach(const Value& mask, const Sdpa& sdpa, Facts& facts, const TargetRules& target) {
  const MaybeShape shape = facts.shape(mask);
  if (!shape || shape->empty()) return {};
  const std::string text = "'" + mask.name + "' of shape " + to_string(*shape);
  const Dim rows = sdpa.q.views.front().axes.size(Role::kRow), keys = sdpa.terms.front().frame.back();
  if (shape->size() == 1 && !target.takes_rank_1_masks) return text + " has one axis";
  if (shape->size() > 1 && (*shape)[shape->size() - 2].is(1) && !rows.is(1) && !target.broadcasts_mask_rows)
    return text + " has one row for " + rows.str() + " queries";
  const Dim missing = keys - shape->back();
  const bool is_short = missing.is_constant() ? missing.value() > 0 : shape->back().is(1);
  if (is_short && !target.takes_short_masks) return text + " is for fewer keys than " + keys.str();
  return {};
}

}  // namespace

std::string target_breach(const Node& node, const Sdpa& sdpa, MatchContext& context) {
  const TargetRules& target = context.target;
  if (const Value* mask = node.input(kMask); mask && !sdpa.terms.empty())
    if (std::string breach = mask_breach(*mask, sdpa, context.facts, target); !breach.empty()) return breach;
  const bool has_presents = node.output(kPresentKey) && node.output(kPresentValue);
  if (node.input(kPastKey) && !has_presents && !target.takes_past_without_present)
    return "past_key without present_key and present_value";
  const Dim key_heads = sdpa.k.views.front().axes.size(Role::kHead);
  const MaybeShape query = context.facts.shape(*node.inputs[kQ]);
  if (query && query->size() == 4 && !target.infers_shared_heads && key_heads.is_constant() && sdpa.query_heads.is_constant() &&
      key_heads != sdpa.query_heads)
    return sdpa.query_heads.str() + " query heads share " + key_heads.str() + " of K and V in the 4-D form";
  return {};
}

}  // namespace attn_opt
