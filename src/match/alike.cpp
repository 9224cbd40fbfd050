#include "src/match/alike.h"

#include <string>
#include <vector>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "src/match/node_forms.h"
#include "src/match/operator_map.h"

namespace attn_opt {
namespace {

constexpr const char* kAxis = "axis";

/// True for operators that make the same of the same, of those that scores and probabilities pass.
bool is_pure(const Node& node) {
  static constexpr OperatorSet kPure = {"MatMul", "Einsum", "Gemm", "Softmax", "LogSoftmax", "Concat", "Split"};
  return has(node, Trait::kElementwise) || has(node, Trait::kMoves) || has(node, Trait::kReduces) || kPure.has(node);
}

/// The axis that NODE names, or works along by default, from the front where its rank is known: it may be counted from either
/// end.
int64_t axis_of(const Node& node, Facts& facts) {
  const bool is_softmax = node.is("Softmax") || node.is("LogSoftmax");
  const int64_t axis = is_softmax ? softmax_axis(node) : node.int_attribute(kAxis, 0);
  const MaybeShape shape = node.input(0) ? facts.shape(*node.inputs[0]) : nullptr;
  return shape && axis < 0 ? axis + std::ssize(*shape) : axis;
}

}  // namespace

bool have_same_attributes(const Node& one, const Node& other, Facts& facts) {
  const auto texts_of = [](const Node& node) {
    std::vector<std::string> texts;
    for (const onnx::AttributeProto& attribute : node.proto->attribute())
      if (attribute.name() != kAxis) texts.push_back(attribute.SerializeAsString());
    return texts;
  };
  return axis_of(one, facts) == axis_of(other, facts) && texts_of(one) == texts_of(other);
}

namespace {

/// are_alike(), of operands that MAY_BROADCAST.
bool compute_the_same(Value& one, Value& other, int& left, Facts& facts, const AlsoAlike& also, bool may_broadcast) {
  const Value &a = canonical(one, facts), &b = canonical(other, facts);
  if (&a == &b) return true;
  const MaybeShape shape = facts.shape(a), other_shape = facts.shape(b);
  const bool has_same_shape = shape && other_shape && *shape == *other_shape;
  // A number of another shape is the same operand of an elementwise node, if the results have the same.
  if (const auto number = facts.uniform(a))
    return number == facts.uniform(b) && facts.type(a) == facts.type(b) &&
           (has_same_shape || (may_broadcast && is_floating(facts.type(a))));
  if (!has_same_shape) return false;
  if (const IntegerData* integers = facts.integers(a))
    return facts.integers(b) && facts.integers(b)->values == integers->values && facts.type(a) == facts.type(b);
  const Node *node = a.producer, *twin = b.producer;
  if (--left < 0 || !node || !twin) return false;
  if (also && also(one, other, left)) return true;
  if (a.output != b.output || node->op() != twin->op() || node->domain() != twin->domain()) return false;
  if (!is_pure(*node) || node->inputs.size() != twin->inputs.size() || !have_same_attributes(*node, *twin, facts)) return false;
  for (size_t i = 0; i < node->inputs.size(); ++i) {
    if (!node->inputs[i] != !twin->inputs[i]) return false;
    const bool broadcasts = has(*node, Trait::kElementwise);
    if (node->inputs[i] && !compute_the_same(*node->inputs[i], *twin->inputs[i], left, facts, also, broadcasts)) return false;
  }
  return true;
}

}  // namespace

bool are_alike(Value& one, Value& other, int& left, Facts& facts, const AlsoAlike& also) {
  return compute_the_same(one, other, left, facts, also, true);
}

}  // namespace attn_opt
