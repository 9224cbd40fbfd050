#include "src/match/nowhere_negative.h"

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "src/match/operator_map.h"

namespace attn_opt {

bool is_nowhere_negative(Value& value, Facts& facts, int steps) {
  static constexpr OperatorSet kNever = {"Exp", "Softmax", "Sigmoid", "Softplus", "Relu", "Abs", "Sqrt", "ReduceL1"};
  static constexpr OperatorSet kOfSigns = {"Add", "Mul", "Div", "Max", "Sum", "Mean", "Concat", "ReduceSum", "ReduceMean"};
  const Node* node = value.producer;
  if (const auto number = facts.uniform(value)) return *number >= 0;
  if (!node || !node->domain().empty() || steps == 0) return false;
  if (kNever.has(*node)) return true;
  const auto is_seen = [&](size_t input) {
    return node->inputs[input] && is_nowhere_negative(*node->inputs[input], facts, steps - 1);
  };
  if (has(*node, Trait::kMoves) || is_no_op(*node, facts)) return is_seen(0);
  if (node->is("Where")) return is_seen(1) && is_seen(2);
  if (!kOfSigns.has(*node)) return false;
  const size_t count = has(*node, Trait::kReduces) ? 1 : node->inputs.size();
  for (size_t input = 0; input < count; ++input)
    if (!is_seen(input)) return false;
  return true;
}

}  // namespace attn_opt
