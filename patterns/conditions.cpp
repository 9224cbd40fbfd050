#include "patterns/conditions.h"

#include "attn_opt/canonical.h"

namespace attn_opt {

std::optional<std::array<Condition, 2>> conditions_of(const Condition& whole, Facts& facts) {
  Condition seen{&canonical(*whole.value, facts), whole.is_true};
  // Two in a row change nothing, and canonical() has seen through them.
  if (const Node* node = seen.value->producer; node && node->is("Not") && node->input(0))
    seen = {&canonical(*node->inputs[0], facts), !seen.is_true};
  const Node* node = seen.value->producer;
  if (!node || !node->is(seen.is_true ? "And" : "Or") || !node->input(0) || !node->input(1)) return std::nullopt;
  return std::array{Condition{node->inputs[0], seen.is_true}, Condition{node->inputs[1], seen.is_true}};
}

}  // namespace attn_opt
