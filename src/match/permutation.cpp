#include "src/match/permutation.h"

#include "src/match/node_forms.h"

namespace attn_opt {

std::vector<int64_t> permutation(const Node& node, size_t rank) {
  const auto* perm = node.is("Transpose") ? node.ints_attribute("perm") : nullptr;
  if (!node.is("Transpose") || (perm && static_cast<size_t>(perm->size()) != rank)) return {};
  std::vector<int64_t> axes(rank);
  for (size_t i = 0; i < rank; ++i) {
    const auto axis = perm ? axis_in(perm->Get(static_cast<int>(i)), rank) : std::optional(rank - 1 - i);
    if (!axis) return {};
    axes[i] = static_cast<int64_t>(*axis);
  }
  return axes;
}

std::vector<int64_t> permutation(const Node& node, Facts& facts) {
  if (!node.is("Transpose")) return {};
  if (const auto* perm = node.ints_attribute("perm")) return permutation(node, static_cast<size_t>(perm->size()));
  const MaybeShape shape = node.input(0) ? facts.shape(*node.inputs[0]) : nullptr;
  return shape ? permutation(node, shape->size()) : std::vector<int64_t>();
}

}  // namespace attn_opt
