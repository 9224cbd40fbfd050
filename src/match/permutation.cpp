#include "src/match/permutation.h"

#include <numeric>

#include "src/match/node_forms.h"

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

std::optional<GatheredOrder> gathered_order(const Node& node, Facts& facts) {
  if (!node.is("Gather") || !node.domain().empty() || !node.input(0) || !node.input(1)) return std::nullopt;
  const IntegerData* given = facts.integers(*node.inputs[1]);
  const MaybeShape shape = given && given->dims.size() == 1 ? facts.shape(*node.inputs[0]) : nullptr;
  const auto axis = shape ? axis_in(node.int_attribute("axis", 0), shape->size()) : std::nullopt;
  if (!axis || !(*shape)[*axis].is(std::ssize(given->values))) return std::nullopt;
  GatheredOrder order{*axis, {}};
  std::vector<bool> is_taken(given->values.size());
  for (const Dim& place : given->values) {
    const auto at = place.is_constant() ? axis_in(place.value(), is_taken.size()) : std::nullopt;
    if (!at || is_taken[*at]) return std::nullopt;
    is_taken[*at] = true;
    order.places.push_back(static_cast<int64_t>(*at));
  }
  return order;
}

}  // namespace attn_opt
