#include "patterns/selection.h"

#include <array>
#include <cmath>

#include "attn_opt/canonical.h"
#include "attn_opt/matcher.h"
#include "patterns/conditions.h"
#include "patterns/inner_values.h"

namespace attn_opt {
namespace {

/// A value times the ones and zeros of a condition.
struct Gated {
  Condition condition;
  Value* value = nullptr;
};

/// The ways to read VALUE, a product, as one; at most two.
std::vector<Gated> gated(Value& value, Facts& facts) {
  std::vector<Gated> found;
  const Node* node = canonical(value, facts).producer;
  if (!node || !node->is("Mul")) return found;
  for (const size_t at : {0, 1})
    if (const auto condition = condition_of_number(*node->inputs[at], facts)) found.push_back({*condition, node->inputs[1 - at]});
  return found;
}

bool is_infinite(Value& value, Facts& facts) {
  const auto number = facts.uniform(value);
  return number && !std::isfinite(*number);
}

}  // namespace

Value* selected_by_sum(Node& node, const ScoreWalk& walk, MatchContext& context) {
  if (!node.is("Add") || walk.softcap != 0 || !walk.tensor_scales.empty()) return nullptr;
  const auto first = gated(*node.inputs[0], context.facts);
  if (first.empty()) return nullptr;
  for (const Gated& other : gated(*node.inputs[1], context.facts))
    for (const Gated& one : first) {
      if (one.condition.value != other.condition.value || one.condition.is_true == other.condition.is_true) continue;
      if (is_infinite(*one.value, context.facts) || is_infinite(*other.value, context.facts)) continue;  // 0 times it is no number
      const auto& [where_true, where_false] = one.condition.is_true ? std::pair(one, other) : std::pair(other, one);
      InnerValues inner(node, context);
      return inner.build().node("Where", {one.condition.value, where_true.value, where_false.value});
    }
  return nullptr;
}

std::optional<Ways> peel_shifted_scores(Node& node, const ScoreWalk& walk, MatchContext& context) {
  for (const size_t scores : {1, 2}) {
    Value* kept = node.inputs[scores];
    double shift = 0;
    const bool adds = commuted("Add", same(&kept), number(&shift))(*node.inputs[3 - scores], context.facts);
    const bool subtracts = !adds && op("Sub", {same(&kept), number(&shift)})(*node.inputs[3 - scores], context.facts);
    if (!(adds || subtracts) || !keeps_shape(*node.outputs[0], *kept, context.facts)) continue;
    InnerValues inner(node, context);
    Value* keep = scores == 1 ? node.inputs[0] : inner.build().node("Not", {node.inputs[0]});
    Value* bias = inner.additive(keep, adds ? shift : -shift, context.facts.type(*kept));
    ScoreWalk next = step(walk, *kept, "Where(bias)");
    ATTN_OPT_MATCH(Value * term, placed_term(*bias, node, walk, context));
    next.terms.push_back({ScoreTerm::Kind::kBias, term, walk.scale, 0, frame_at(node, walk, context)});
    return Ways(std::vector{std::move(next)});
  }
  return std::nullopt;
}

}  // namespace attn_opt
