#include "patterns/scores/score_layout.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "patterns/inner_values.h"

namespace attn_opt {
namespace {

std::vector<int64_t> identity(size_t rank) {
  std::vector<int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

std::vector<int64_t> last_two_swapped(size_t rank) {
  std::vector<int64_t> axes = identity(rank);
  std::swap(axes[rank - 1], axes[rank - 2]);
  return axes;
}

}  // namespace

ScoreLayout ScoreLayout::keys_by_queries(size_t rank) { return {last_two_swapped(rank)}; }

bool ScoreLayout::swaps_last_two() const { return order.size() >= 2 && order == last_two_swapped(order.size()); }

Shape ScoreLayout::placed(const Shape& shape) const {
  if (order.empty()) return shape;
  Shape placed;
  for (const int64_t axis : order) placed.push_back(shape[static_cast<size_t>(axis)]);
  return placed;
}

ScoreLayout ScoreLayout::before_transpose(const std::vector<int64_t>& perm) const {
  ScoreLayout before{perm, head_axes};
  if (!order.empty())
    std::ranges::transform(order, before.order.begin(), [&](int64_t axis) { return perm[static_cast<size_t>(axis)]; });
  if (before.order == identity(perm.size())) before.order.clear();
  return before;
}

ScoreLayout ScoreLayout::swapped(size_t rank) const { return before_transpose(last_two_swapped(rank)); }

Value* placed(Value& value, const ScoreLayout& layout, Node& reader, MatchContext& context) {
  if (layout.order.empty()) return &value;
  const MaybeShape shape = context.facts.shape(value);
  if (!shape || shape->size() > layout.order.size()) return nullptr;
  if (std::ranges::all_of(*shape, [](const Dim& size) { return size.is(1); })) return &value;
  InnerValues inner(reader, context);
  return inner.transposed(inner.raised(&value, layout.order.size()), layout.order);
}

}  // namespace attn_opt
