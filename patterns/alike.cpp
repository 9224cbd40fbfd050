#include "patterns/alike.h"

#include <algorithm>
#include <string>
#include <vector>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/scores/form_reader.h"
#include "src/match/node_forms.h"
#include "src/match/operator_map.h"

namespace attn_opt {
namespace {

constexpr const char* kAxis = "axis";
/// So many nodes that compute the same are compared.
constexpr int kMaxAlike = 12;

bool are_alike(Value& one, Value& other, int& left, Facts& facts);

/// True for operators that make the same of the same, of those that scores and probabilities pass.
bool is_pure(const Node& node) {
  static constexpr OperatorSet kPure = {"MatMul", "Einsum", "Gemm", "Softmax", "LogSoftmax", "Concat", "Split"};
  return has(node, Trait::kElementwise) || has(node, Trait::kMoves) || has(node, Trait::kReduces) || kPure.has(node);
}

/// True if ONE and OTHER add up the same, in whatever words.
bool add_up_alike(Value& one, Value& other, int& left, Facts& facts) {
  const std::vector<Addend> terms = FormReader(facts).linear_terms(one);
  std::vector<Addend> others = FormReader(facts).linear_terms(other);
  if (terms.size() != others.size() || terms.size() < 2) return false;
  return std::ranges::all_of(terms, [&](const Addend& term) {
    const auto twin = std::ranges::find_if(others, [&](const Addend& each) {
      return each.coefficient == term.coefficient && are_alike(*each.value, *term.value, left, facts);
    });
    if (twin == others.end()) return false;
    others.erase(twin);
    return true;
  });
}

/// The axis that NODE names, or works along by default, from the front where its rank is known: it may be counted from either
/// end.
int64_t axis_of(const Node& node, Facts& facts) {
  const bool is_softmax = node.is("Softmax") || node.is("LogSoftmax");
  const int64_t axis = is_softmax ? softmax_axis(node) : node.int_attribute(kAxis, 0);
  const MaybeShape shape = node.input(0) ? facts.shape(*node.inputs[0]) : nullptr;
  return shape && axis < 0 ? axis + std::ssize(*shape) : axis;
}

/// computes_same(), of at most LEFT nodes.
bool are_alike(Value& one, Value& other, int& left, Facts& facts) {
  const Value &a = canonical(one, facts), &b = canonical(other, facts);
  if (&a == &b) return true;
  const MaybeShape shape = facts.shape(a), other_shape = facts.shape(b);
  const bool has_same_shape = shape && other_shape && *shape == *other_shape;
  // A number of another shape is the same operand, if the results have the same.
  if (const auto number = facts.uniform(a)) return number == facts.uniform(b) && (has_same_shape || is_floating(facts.type(a)));
  if (!has_same_shape) return false;
  if (const IntegerData* integers = facts.integers(a))
    return facts.integers(b) && facts.integers(b)->values == integers->values && facts.type(a) == facts.type(b);
  const Node *node = a.producer, *twin = b.producer;
  if (--left < 0 || !node || !twin) return false;
  if (has(*node, Trait::kAdds) && has(*twin, Trait::kAdds) && add_up_alike(one, other, left, facts)) return true;
  if (a.output != b.output || node->op() != twin->op() || node->domain() != twin->domain()) return false;
  if (!is_pure(*node) || node->inputs.size() != twin->inputs.size() || !have_same_attributes(*node, *twin, facts)) return false;
  for (size_t i = 0; i < node->inputs.size(); ++i) {
    if (!node->inputs[i] != !twin->inputs[i]) return false;
    if (node->inputs[i] && !are_alike(*node->inputs[i], *twin->inputs[i], left, facts)) return false;
  }
  return true;
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

bool computes_same(Value& one, Value& other, Facts& facts) {
  int left = kMaxAlike;
  return are_alike(one, other, left, facts);
}

}  // namespace attn_opt
