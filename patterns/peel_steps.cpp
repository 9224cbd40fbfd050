#include "patterns/peel_steps.h"

#include "attn_opt/canonical.h"

namespace attn_opt {

ScoreWalk step(const ScoreWalk& walk, Value& next, const std::string& what) {
  ScoreWalk after = walk;
  after.value = &next;
  after.peeled.push_back(what);
  return after;
}

bool keeps_shape(const Value& result, const Value& operand, Facts& facts) {
  const MaybeShape after = facts.shape(result);
  const MaybeShape before = facts.shape(operand);
  if (!after || !before || after->size() != before->size() || before->size() < 2) return false;
  for (size_t axis = 0; axis < after->size(); ++axis) {
    const Dim &was = (*before)[axis], &is = (*after)[axis];
    if (was == is) continue;
    if (was.is(1) || (was.is_constant() && is.is_constant())) return false;
  }
  return true;
}

Matched<Value*> placed_term(Value& term, Node& node, const ScoreWalk& walk, MatchContext& context) {
  Value* value = placed(canonical(term, context.facts), walk.layout, node, context);
  if (!value) return missed("scores.transpose", &node, "the rank of '" + term.name + "' is not known", walk.peeled);
  return value;
}

Shape frame_at(const Node& node, const ScoreWalk& walk, MatchContext& context) {
  return walk.layout.placed(context.facts.shape(*node.outputs[0]).known());
}

}  // namespace attn_opt
