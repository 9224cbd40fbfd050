#include "patterns/probabilities/layout_end.h"

#include <algorithm>
#include <vector>

#include "patterns/layout_checks.h"
#include "patterns/operands/operand_walk.h"
#include "patterns/readers.h"

namespace attn_opt {

std::optional<LayoutEnd> layout_end(const Value& value, Node& first, MatchContext& context) {
  const MaybeShape own = context.facts.shape(value);
  if (!own || own->size() < 2) return std::nullopt;
  std::vector<Role> roles(own->size(), Role::kBatch);
  roles[own->size() - 2] = Role::kRow;
  roles.back() = Role::kFeature;
  std::optional<AxisMap> axes = AxisMap::of(*own, roles);
  Node* next = &first;
  for (int step = 0; step < kMaxTogether; ++step) {
    axes = axes_after(*next, *axes, context);
    if (!axes) return std::nullopt;
    Value& made = *next->outputs[0];
    const bool is_straight = lie_last(*axes, Role::kRow, Role::kFeature);
    const MaybeShape after = context.facts.shape(made);  // of which an axis of size 1 may have moved
    const bool has_moved = after && after->size() == own->size() && !std::equal(own->begin(), own->end() - 2, after->begin());
    if (!has_moved && (is_straight || lie_last(*axes, Role::kFeature, Role::kRow))) return LayoutEnd{&made, !is_straight};
    const Readers readers = readers_of(made, context.facts);
    if (!readers.only_one() || !readers.all[0].node || readers.all[0].input != 0 || readers.all[0].node->graph != first.graph)
      return std::nullopt;
    next = readers.all[0].node;
    if (next->outputs.empty() || !next->outputs[0]) return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace attn_opt
