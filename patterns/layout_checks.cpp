#include "patterns/layout_checks.h"

#include <algorithm>

namespace attn_opt {

bool keeps_last_two_axes(const Node& node, Facts& facts) {
  const Shape* before = facts.shape(*node.inputs[0]);
  const Shape* after = facts.shape(*node.outputs[0]);
  return before && after && before->size() >= 2 && after->size() >= 2 &&
         std::equal(before->end() - 2, before->end(), after->end() - 2);
}

bool swaps_last_two_axes(const Node& node) {
  const auto* perm = node.ints_attribute("perm");
  const int rank = perm ? perm->size() : 0;
  if (rank < 2 || perm->Get(rank - 2) != rank - 1 || perm->Get(rank - 1) != rank - 2) return false;
  for (int axis = 0; axis + 2 < rank; ++axis)
    if (perm->Get(axis) != axis) return false;
  return true;
}

}  // namespace attn_opt
