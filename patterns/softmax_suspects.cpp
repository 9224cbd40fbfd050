// What may be a softmax, told by few nodes, and what looks like one that cannot be read.
#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "attn_opt/canonical.h"
#include "attn_opt/matcher.h"
#include "attn_opt/operator_traits.h"
#include "patterns/exponentials.h"
#include "patterns/form_reader.h"
#include "patterns/products.h"
#include "patterns/softmax_anchor.h"

namespace attn_opt {
namespace {

bool is_one_of(const Node& node, std::initializer_list<std::string_view> op_types) {
  return std::ranges::any_of(op_types, [&node](std::string_view op_type) { return node.is(op_type); });
}

bool is_layout(const Node& node) { return has(node, Trait::kMoves) || is_one_of(node, {"Split", "Max", "Clip", "Pow", "Log"}); }

/// True if VALUE holds nothing but ones, or ones stand beside others in it.
bool has_ones(Value& value, Facts& facts) {
  const Node* maker = canonical(value, facts).producer;
  if (facts.uniform(value) == 1.0) return true;
  return maker && is_one_of(*maker, {"Concat", "Pad"}) &&
         std::ranges::any_of(maker->inputs, [&](Value* part) { return part && facts.uniform(*part) == 1.0; });
}

/// True if NODE adds up elements: a Reduce*, or a product with ones.
bool adds_up(const Node& node, Facts& facts) {
  if (node.is("ReduceSum") || node.is("ReduceL1") || node.is("ReduceMean") || node.is("ReduceSumSquare")) return true;
  return is_product(node) && std::ranges::any_of(node.inputs, [&](Value* input) {
           return node.inputs.size() == 1 || (input && has_ones(*input, facts));
         });
}

/// Nodes that may change nothing, looked through without knowing it.
constexpr int kMaxSuspectCopies = 8;

bool may_add_nothing(const Node& node) { return has(node, Trait::kAdds) || has(node, Trait::kMultiplies); }

/// True if VALUE is an initializer or an input, or may be a copy of one or a number computed from some.
bool may_be_number(const Value* value, int steps = kMaxSuspectCopies) {
  for (; steps > 0 && value; --steps) {
    if (!value->producer || is_one_of(*value->producer, {"Constant", "ConstantOfShape"})) return true;
    const Node& node = *value->producer;
    if (!may_be_no_op(node) || (may_add_nothing(node) && !may_be_number(node.input(1), steps / 2))) return false;
    value = node.input(0);
  }
  return false;
}

/// True if VALUE is what an OP_TYPE makes, or OR_FORM a sum, a product or a choice, or may be a copy of that.
bool made_by(const Value* value, std::initializer_list<std::string_view> op_types, bool or_form = false) {
  for (int step = 0; step < kMaxSuspectCopies && value && value->producer; ++step) {
    const Node& node = *value->producer;
    if (is_one_of(node, op_types) || (or_form && (may_add_nothing(node) || has(node, Trait::kSelects)))) return true;
    if (node.is("Where")) {
      value = node.input(may_be_number(node.input(1)) ? 2 : 1);
      continue;
    }
    if (!may_be_no_op(node)) return false;
    value = node.input(may_add_nothing(node) && may_be_number(node.input(0)) ? 1 : 0);
  }
  return false;
}

/// True if VALUE is what an Exp, a Pow or a Softmax makes, or may be that masked.
bool may_be_weights(const Value* value) {
  const Node* maker = value ? value->producer : nullptr;
  if (made_by(value, {"Exp", "Pow", "Softmax"})) return true;
  if (!maker || !is_one_of(*maker, {"Mul", "Where"})) return false;
  return std::ranges::any_of(maker->inputs, [](const Value* input) { return made_by(input, {"Exp", "Pow", "Softmax"}); });
}

bool may_be_product(const Value* value) { return made_by(value, {"MatMul", "Einsum", "Transpose", "Slice", "Split"}); }

bool may_be_sum(const Value* value) {
  return made_by(value, {"ReduceSum", "ReduceL1", "ReduceMean", "MatMul", "Einsum", "Clip", "Transpose", "Slice", "Split"},
                 true);
}

bool may_be_reciprocal(const Value* value) { return made_by(value, {"Reciprocal", "Div", "Pow"}); }

/// True if VALUE is what something is divided by a sum with.
bool may_be_inverse_sum(const Value* value) {
  const Node* maker = value ? value->producer : nullptr;
  if (!maker || !is_one_of(*maker, {"Reciprocal", "Div", "Pow"})) return false;
  return made_by(maker->input(0), {"ReduceSum"}) || made_by(maker->input(1), {"ReduceSum"});
}

bool is_reciprocal(Value& value, Facts& facts) {
  return either({op("Reciprocal", {any()}), op("Div", {number_is(1), any()}), op("Pow", {any(), number_is(-1)})})(value, facts);
}

/// What NODE may divide by: a divisor, an inverse, or what exponents are less by, the logarithm of one.
std::vector<Value*> divisors(const Node& node, Facts& facts) {
  Value* lowered_by = nullptr;
  const bool is_power = node.is("Exp") || (node.is("Pow") && node.input(1));
  if (is_power && difference(any(), any(&lowered_by))(*node.inputs[node.is("Exp") ? 0 : 1], facts)) return {lowered_by};
  std::vector<Value*> found;
  if (!node.is("Div") && !node.is("Mul") && !node.is("Einsum")) return found;
  for (size_t at = node.is("Div") ? 1 : 0; at < node.inputs.size(); ++at)
    if (node.inputs[at] && (node.is("Div") || is_reciprocal(*node.inputs[at], facts))) found.push_back(node.inputs[at]);
  return found;
}

}  // namespace

bool may_be_softmax(const Node& node) {
  const Value *first = node.input(0), *second = node.input(1);
  if (node.is("Softmax")) return true;
  if (node.is("Div"))
    return may_be_weights(first) || made_by(second, {"ReduceSum"}) || (may_be_product(first) && may_be_sum(second));
  if (node.is("Exp") || node.is("Pow")) return made_by(node.is("Exp") ? first : second, {"LogSoftmax", "Sub", "Add"});
  if (node.is("LpNormalization")) return true;
  if (!node.is("Mul")) return false;
  const bool is_behind_product =
      (may_be_product(first) && may_be_reciprocal(second)) || (may_be_product(second) && may_be_reciprocal(first));
  return may_be_weights(first) || may_be_weights(second) || is_behind_product || may_be_inverse_sum(first) ||
         may_be_inverse_sum(second);
}

const Node* unread_sum(const Node& node, Facts& facts) {
  // What stands between the exponentials and their sum, or between the sum and the division, is what could not be read.
  constexpr size_t kMaxValues = 32;
  std::vector<Value*> values = divisors(node, facts);
  const Node* sum = nullptr;
  for (size_t i = 0; i < values.size() && values.size() < kMaxValues; ++i) {
    const Node* maker = canonical(*values[i], facts).producer;
    if (!maker || !maker->domain().empty()) continue;
    if (sum && is_exponential(*values[i], facts)) return sum;
    if (maker->is("ReduceLogSumExp")) return maker;
    const bool is_sum = adds_up(*maker, facts);
    std::vector<size_t> followed = form_operands(*maker);
    if (is_sum || is_layout(*maker)) followed = is_product(*maker) ? std::vector<size_t>{0, 1} : std::vector<size_t>{0};
    if (is_sum) sum = maker;
    for (const size_t operand : followed)
      if (Value* input = maker->input(static_cast<int>(operand))) values.push_back(input);
  }
  return nullptr;
}

}  // namespace attn_opt
