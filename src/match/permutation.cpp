#include "src/match/permutation.h"

#include <numeric>

namespace attn_opt {
namespace {

using Perm = google::protobuf::RepeatedField<int64_t>;

/// PERM, or, if there is none, RANK axes turned round.
std::vector<int64_t> axes_of_perm(const Perm* perm, size_t rank) {
  const auto count = static_cast<int64_t>(rank);
  if (perm && perm->size() != count) return {};
  std::vector<int64_t> axes(rank);
  if (!perm) {
    std::iota(axes.rbegin(), axes.rend(), 0);
    return axes;
  }
  for (size_t i = 0; i < rank; ++i) {
    const int64_t given = perm->Get(static_cast<int>(i));
    if (given < -count || given >= count) return {};
    axes[i] = given < 0 ? given + count : given;
  }
  return axes;
}

}  // namespace

std::vector<int64_t> permutation(const Node& node, size_t rank) {
  if (!node.is("Transpose")) return {};
  return axes_of_perm(node.ints_attribute("perm"), rank);
}

std::vector<int64_t> permutation(const Node& node, Facts& facts) {
  if (!node.is("Transpose")) return {};
  if (const Perm* perm = node.ints_attribute("perm")) return axes_of_perm(perm, static_cast<size_t>(perm->size()));
  const MaybeShape shape = node.input(0) ? facts.shape(*node.inputs[0]) : nullptr;
  return shape ? axes_of_perm(nullptr, shape->size()) : std::vector<int64_t>();
}

}  // namespace attn_opt
