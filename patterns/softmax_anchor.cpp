#include "patterns/softmax_anchor.h"

#include "attn_opt/canonical.h"
#include "attn_opt/matcher.h"

namespace attn_opt {
namespace {

bool made_by(const Value* value, std::string_view op_type) { return value && value->producer && value->producer->is(op_type); }

}  // namespace

bool may_be_softmax(const Node& node) {
  if (node.is("Softmax")) return true;
  if (node.is("Div")) return made_by(node.input(0), "Exp");
  if (!node.is("Mul")) return false;
  return (made_by(node.input(0), "Exp") && made_by(node.input(1), "Reciprocal")) ||
         (made_by(node.input(1), "Exp") && made_by(node.input(0), "Reciprocal"));
}

std::optional<SoftmaxSite> softmax_at(Node& node, Facts& facts) {
  if (node.is("Softmax")) return SoftmaxSite{node.inputs[0], node.outputs[0]};
  Value *exponent = nullptr, *exponential = nullptr, *shifted = nullptr;
  const Matcher exp = op("Exp", {any(&exponent)});
  const Matcher numerator = [&](Value& value, Facts& f) {
    exponential = &value;
    return exp(value, f);
  };
  const Matcher sum = reduced_over_last("ReduceSum", same(&exponential));
  if (!op("Div", {numerator, sum})(*node.outputs[0], facts) &&
      !op("Mul", {numerator, op("Reciprocal", {sum})})(*node.outputs[0], facts) &&
      !(node.is("Mul") && numerator(*node.inputs[1], facts) && op("Reciprocal", {sum})(*node.inputs[0], facts)))
    return std::nullopt;
  const Matcher maximum = reduced_over_last("ReduceMax", same(&shifted));
  Value* input = op("Sub", {any(&shifted), maximum})(*exponent, facts) ? shifted : exponent;
  return SoftmaxSite{input, node.outputs[0]};
}

Matched<void> check_softmax_axis(const Node& node, MatchContext& context) {
  if (!node.is("Softmax")) return {};
  const Shape* shape = context.facts.shape(*node.inputs[0]);
  if (!shape) return missed("softmax.unknown-rank", &node, "the rank of '" + node.inputs[0]->name + "' is not known");
  // Before opset 13 the default was 1 and the axes from there on were flattened: for the last axis that is the same.
  const int64_t axis = node.int_attribute("axis", context.view.opset(*node.graph) < 13 ? 1 : -1);
  const int64_t last = static_cast<int64_t>(shape->size()) - 1;
  if (axis != -1 && axis != last)
    return missed("softmax.axis", &node, "axis " + std::to_string(axis) + " of " + to_string(*shape) + " is not the last");
  return {};
}

}  // namespace attn_opt
