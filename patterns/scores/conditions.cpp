#include "patterns/scores/conditions.h"

#include "attn_opt/canonical.h"
#include "patterns/linear_function.h"

namespace attn_opt {

Condition affirmed(const Condition& whole, Facts& facts) {
  constexpr int kMaxFunctions = 8;
  Condition seen{&canonical(*whole.value, facts), whole.is_true};
  for (int step = 0; step < kMaxFunctions; ++step) {
    const auto function = truth_function_in(*seen.value, facts);
    if (!function) break;
    seen = {function->value, seen.is_true == function->is_true};
  }
  return seen;
}

Value* nan_where(const Condition& whole, Facts& facts) {
  const Condition seen = affirmed(whole, facts);
  const Node* node = seen.value->producer;
  if (!node || !node->input(0)) return nullptr;
  // not (x == x)  =>  IsNaN(x)
  const bool is_test = seen.is_true ? node->is("IsNaN") : compares_with_itself(*node, facts);
  return is_test ? node->inputs[0] : nullptr;
}

bool compares_with_itself(const Node& node, Facts& facts) {
  return node.is("Equal") && node.input(0) && node.input(1) &&
         &canonical(*node.inputs[0], facts) == &canonical(*node.inputs[1], facts);
}

std::optional<Condition> condition_of_number(Value& number, Facts& facts) {
  constexpr int kMaxCasts = 8;  // 0 and 1 are the same in every type
  const Node* node = canonical(number, facts).producer;
  for (int casts = 0; casts < kMaxCasts && node && node->is("Cast") && node->input(0); ++casts) {
    if (facts.type(*node->inputs[0]) == onnx::TensorProto::BOOL) return affirmed({node->inputs[0], true}, facts);
    node = canonical(*node->inputs[0], facts).producer;
  }
  return std::nullopt;
}

std::optional<std::array<Condition, 2>> conditions_of(const Condition& whole, Facts& facts) {
  const Condition seen = affirmed(whole, facts);
  const Node* node = seen.value->producer;
  if (!node || !node->is(seen.is_true ? "And" : "Or") || !node->input(0) || !node->input(1)) return std::nullopt;
  return std::array{Condition{node->inputs[0], seen.is_true}, Condition{node->inputs[1], seen.is_true}};
}

}  // namespace attn_opt
