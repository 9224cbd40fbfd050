#include "patterns/probabilities/part_moves.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "attn_opt/operator_traits.h"
#include "src/match/shape_rules/reduced_axis.h"

namespace attn_opt {
namespace {

/// As unit_moves(): of axes that sizes do not tell apart those in front are added, or left out.
std::optional<std::vector<int64_t>> unit_moves_in_front(Shape before, Shape after) {
  const int64_t last = std::ssize(before) - 1;
  std::ranges::reverse(before);
  std::ranges::reverse(after);
  auto origins = unit_moves(before, after);
  if (!origins) return std::nullopt;
  std::ranges::reverse(*origins);
  for (int64_t& axis : *origins)
    if (axis != kNoAxis) axis = last - axis;
  return origins;
}

/// Which axis of what NODE regroups each axis of what it makes is, where it adds or leaves out axes of size 1; nullopt if it
/// does more. Squeeze and Unsqueeze name those that sizes alone do not tell apart.
std::optional<std::vector<int64_t>> unit_moves_of(const Node& node, Facts& facts) {
  const MaybeShape before = facts.shape(*node.inputs[0]), after = facts.shape(*node.outputs[0]);
  if (!before || !after) return std::nullopt;
  const bool adds = node.is("Unsqueeze");
  const auto axes = adds || node.is("Squeeze") ? reduced_axes(node, (adds ? after : before)->size(), facts) : std::nullopt;
  if (!axes || axes->empty()) return unit_moves_in_front(*before, *after);
  std::vector<int64_t> origins;
  int64_t next = 0;
  for (size_t axis = 0; axis < (adds ? after : before)->size(); ++axis) {
    const bool is_unit = std::ranges::binary_search(*axes, axis);
    if (adds || !is_unit) origins.push_back(is_unit ? kNoAxis : next);
    if (!adds || !is_unit) ++next;
  }
  return origins;
}

/// What NODE, a regrouping, makes by adding and leaving out axes of size 1, which of its axes each is in AT: of what it reads,
/// or of what others above it regrouped before. No value if it does more.
Untransposed before_unit_moves(const Node& node, Facts& facts) {
  auto origins = unit_moves_of(node, facts);
  if (origins) return {node.inputs[0], *std::move(origins)};
  const MaybeShape after = facts.shape(*node.outputs[0]);
  if (!after) return {};
  const auto fits = [&](const Shape& before) {
    origins = unit_moves_in_front(before, *after);
    return origins.has_value();
  };
  Value* source = before_regroupings(node, fits, facts);
  return source ? Untransposed{source, *std::move(origins)} : Untransposed();
}

}  // namespace

Untransposed before_moves(Value& value, Facts& facts) {
  Untransposed seen = untransposed(value, facts);
  for (int step = 0; step < kMaxTogether; ++step) {
    const Node* node = seen.value->producer;
    const Untransposed moved = node && has(*node, Trait::kRegroups) ? before_unit_moves(*node, facts) : Untransposed();
    if (!moved.value) return seen;
    const Untransposed above = untransposed(*moved.value, facts);
    for (int64_t& axis : seen.at) {
      if (axis != kNoAxis) axis = moved.at[static_cast<size_t>(axis)];
      if (axis != kNoAxis) axis = above.at[static_cast<size_t>(axis)];
    }
    seen.value = above.value;
  }
  return seen;
}

}  // namespace attn_opt
