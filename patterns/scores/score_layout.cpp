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

/// Axes of two shapes that hold the same elements: [begin, end) of each.
struct AxisGroup {
  size_t before_begin, before_end, after_begin, after_end;

  bool is_one_axis() const { return before_end - before_begin == 1 && after_end - after_begin == 1; }
};

/// BEFORE and AFTER, of the same elements, in the smallest groups of axes that hold the same; none where sizes do not tell.
std::vector<AxisGroup> axis_groups(const Shape& before, const Shape& after) {
  std::vector<AxisGroup> groups;
  for (size_t i = 0, j = 0; i < before.size() || j < after.size();) {
    if (i == before.size() || j == after.size()) return {};
    AxisGroup group{i, i + 1, j, j + 1};
    Dim one = before[i], other = after[j];
    while (one != other) {
      if (exact_quotient(other, one) && group.before_end < before.size())
        one = one * before[group.before_end++];
      else if (exact_quotient(one, other) && group.after_end < after.size())
        other = other * after[group.after_end++];
      else
        return {};
    }
    groups.push_back(group);
    i = group.before_end;
    j = group.after_end;
  }
  return groups;
}

std::vector<int64_t> last_two_swapped(size_t rank) {
  std::vector<int64_t> axes = identity(rank);
  std::swap(axes[rank - 1], axes[rank - 2]);
  return axes;
}

}  // namespace

ScoreLayout ScoreLayout::keys_by_queries(size_t rank) { return rank < 2 ? ScoreLayout() : ScoreLayout{last_two_swapped(rank)}; }

bool ScoreLayout::swaps_last_two() const { return order.size() >= 2 && order == last_two_swapped(order.size()); }

Shape ScoreLayout::placed(const Shape& shape) const {
  if (order.empty()) return shape;
  Shape placed;
  for (const int64_t axis : order) placed.push_back(axis == kNoAxis ? Dim(1) : shape[static_cast<size_t>(axis)]);
  return placed;
}

size_t ScoreLayout::rank() const {
  return static_cast<size_t>(std::ranges::count_if(order, [](int64_t axis) { return axis != kNoAxis; }));
}

ScoreLayout ScoreLayout::before_transpose(const std::vector<int64_t>& perm) const { return before_moves(perm, perm.size()); }

ScoreLayout ScoreLayout::before_moves(const std::vector<int64_t>& origins, size_t rank) const {
  ScoreLayout before{order.empty() ? origins : order, head_axes};
  if (!order.empty())
    for (int64_t& axis : before.order) axis = axis == kNoAxis ? kNoAxis : origins[static_cast<size_t>(axis)];
  for (size_t axis = 0; axis < rank; ++axis) {
    if (std::ranges::find(before.order, static_cast<int64_t>(axis)) != before.order.end()) continue;
    const auto lacking = std::ranges::find(before.order.rbegin(), before.order.rend(), kNoAxis);
    if (lacking == before.order.rend())
      before.order.insert(before.order.begin(), static_cast<int64_t>(axis));
    else
      *lacking = static_cast<int64_t>(axis);
  }
  // Axes of size 1 that it lacks in front are any batch axes.
  const auto first = std::ranges::find_if(before.order, [](int64_t axis) { return axis != kNoAxis; });
  const std::vector<int64_t> straight = identity(rank);
  // Not std::ranges::equal: Clang below 16 does not compile std::ranges::subrange.
  if (std::equal(first, before.order.end(), straight.begin(), straight.end())) before.order.clear();
  return before;
}

ScoreLayout ScoreLayout::behind_moves(const std::vector<int64_t>& origins, size_t rank) const {
  ScoreLayout behind{order.empty() ? identity(rank) : order, head_axes};
  for (int64_t& axis : behind.order) {
    const auto found = axis == kNoAxis ? origins.end() : std::ranges::find(origins, axis);
    axis = found == origins.end() ? kNoAxis : found - origins.begin();
  }
  if (behind.order == identity(origins.size())) behind.order.clear();
  return behind;
}

std::optional<ScoreLayout> ScoreLayout::before_regrouping(const Shape& before, const Shape& after) const {
  if (order.size() != after.size() || rank() != after.size()) return std::nullopt;
  const std::vector<AxisGroup> groups = axis_groups(before, after);
  ScoreLayout layout{{}, head_axes};
  for (size_t at = 0; at < order.size();) {
    const auto group = std::ranges::find(groups, static_cast<size_t>(order[at]), &AxisGroup::after_begin);
    if (group == groups.end() || (at + 2 >= order.size() && !group->is_one_axis())) return std::nullopt;
    for (size_t axis = group->after_begin; axis < group->after_end; ++axis, ++at)
      if (at >= order.size() || order[at] != static_cast<int64_t>(axis)) return std::nullopt;
    for (size_t axis = group->before_begin; axis < group->before_end; ++axis)
      layout.order.push_back(static_cast<int64_t>(axis));
  }
  if (layout.order == identity(before.size())) layout.order.clear();
  return layout;
}

ScoreLayout ScoreLayout::swapped(size_t rank) const { return before_transpose(last_two_swapped(rank)); }

Value* placed(Value& value, const ScoreLayout& layout, Node& reader, MatchContext& context) {
  if (layout.order.empty()) return &value;
  const MaybeShape shape = context.facts.shape(value);
  const size_t rank = layout.rank();
  if (!shape || shape->size() > rank) return nullptr;
  if (std::ranges::all_of(*shape, [](const Dim& size) { return size.is(1); })) return &value;
  std::vector<int64_t> order, lacking;
  for (size_t axis = 0; axis < layout.order.size(); ++axis) {
    if (layout.order[axis] == kNoAxis)
      lacking.push_back(static_cast<int64_t>(axis));
    else
      order.push_back(layout.order[axis]);
  }
  InnerValues inner(reader, context);
  Value* raised = inner.raised(&value, rank);
  Value* moved = order == identity(rank) ? raised : inner.transposed(raised, order);
  return lacking.empty() ? moved : inner.unsqueezed(moved, lacking);
}

}  // namespace attn_opt
