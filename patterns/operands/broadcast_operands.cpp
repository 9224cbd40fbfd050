#include "patterns/operands/broadcast_operands.h"

#include <algorithm>

#include "patterns/inner_values.h"

namespace attn_opt {
namespace {

/// An axis of one side, and that of the other side which holds the same part.
struct AxisPair {
  size_t own, wanted;
};

bool is_leading(Role role) { return role == Role::kBatch || role == Role::kHead; }

/// The leading axes of both sides, paired in the order of their factors; empty if there are others on each.
std::vector<AxisPair> leading_pairs(const ProductSide& side, const ProductSide& other) {
  const auto leading = [](const ProductSide& from) {
    std::vector<size_t> axes;
    for (size_t i = 0; i < from.roles.size(); ++i) {
      const size_t axis = from.order.empty() ? i : static_cast<size_t>(from.order[i]);
      if (is_leading(from.roles[axis])) axes.push_back(axis);
    }
    return axes;
  };
  const std::vector<size_t> own = leading(side), wanted = leading(other);
  std::vector<AxisPair> pairs;
  if (own.size() != wanted.size()) return pairs;
  for (size_t i = 0; i < own.size(); ++i) {
    if (side.roles[own[i]] != other.roles[wanted[i]]) return {};
    pairs.push_back({own[i], wanted[i]});
  }
  return pairs;
}

/// The leading axes of SIDE of size 1 where OTHER has another size.
std::vector<AxisPair> broadcast_axes(const ProductSide& side, const ProductSide& other, Facts& facts) {
  const Shape &own = facts.shape(*side.value).known(), &wanted = facts.shape(*other.value).known();
  std::vector<AxisPair> axes = leading_pairs(side, other);
  std::erase_if(axes, [&](const AxisPair& pair) { return !own[pair.own].is(1) || wanted[pair.wanted].is(1); });
  return axes;
}

/// broadcast_axes() of ROLE, where SIDE has other axes of it, too, that are not of size 1.
std::vector<AxisPair> axes_beside_others(const ProductSide& side, const ProductSide& other, Role role, Facts& facts) {
  std::vector<AxisPair> axes = broadcast_axes(side, other, facts);
  std::erase_if(axes, [&](const AxisPair& pair) { return side.roles[pair.own] != role; });
  const Shape& shape = facts.shape(*side.value).known();
  bool has_others = false;
  for (size_t axis = 0; axis < shape.size(); ++axis) has_others |= side.roles[axis] == role && !shape[axis].is(1);
  return has_others ? axes : std::vector<AxisPair>();
}

/// SIDE with an axis of size 1, behind its last one of heads, for each of OTHER's heads that it has none for.
ProductSide with_all_heads(ProductSide side, const ProductSide& other, Node& reader, MatchContext& context) {
  const auto lacking = std::ranges::count(other.roles, Role::kHead) - std::ranges::count(side.roles, Role::kHead);
  size_t last = side.roles.size();
  for (size_t at = 0; at < side.roles.size(); ++at)
    if (side.roles[side.order.empty() ? at : static_cast<size_t>(side.order[at])] == Role::kHead) last = at;
  if (lacking <= 0 || last == side.roles.size()) return side;
  for (std::ptrdiff_t i = 0; i < lacking; ++i) {
    const int64_t added = (side.order.empty() ? static_cast<int64_t>(last) : side.order[last]) + 1;
    side.value = InnerValues(reader, context).unsqueezed(side.value, {added});
    side.roles.insert(side.roles.begin() + added, Role::kHead);
    if (side.order.empty()) continue;
    for (int64_t& axis : side.order) axis += axis >= added ? 1 : 0;
    side.order.insert(side.order.begin() + static_cast<std::ptrdiff_t>(last) + 1, added);
  }
  return side;
}

/// The axes of heads of SIDE that several heads of OTHER, a known number, share.
std::vector<AxisPair> shared_heads(const ProductSide& side, const ProductSide& other, Facts& facts) {
  std::vector<AxisPair> axes = axes_beside_others(side, other, Role::kHead, facts);
  const Shape& wanted = facts.shape(*other.value).known();
  std::erase_if(axes, [&](const AxisPair& pair) { return !wanted[pair.wanted].is_constant(); });
  return axes;
}

/// axes_beside_others() of heads, in front of an axis of heads that SIDE has its own of: of the operator's heads those beside
/// each other share one.
std::vector<AxisPair> outer_shared_heads(const ProductSide& side, const ProductSide& other, Facts& facts) {
  std::vector<AxisPair> axes = axes_beside_others(side, other, Role::kHead, facts);
  const std::vector<AxisPair> all = leading_pairs(side, other);
  const Shape& shape = facts.shape(*side.value).known();
  const auto is_own = [&](const AxisPair& pair) { return side.roles[pair.own] == Role::kHead && !shape[pair.own].is(1); };
  std::erase_if(axes, [&](const AxisPair& shared) {
    return std::none_of(std::ranges::find(all, shared.own, &AxisPair::own), all.end(), is_own);
  });
  return axes;
}

/// SIDE with AXES at the size they have in OTHER.
ProductSide expanded(const ProductSide& side, const std::vector<AxisPair>& axes, const ProductSide& other, Node& reader,
                     MatchContext& context) {
  if (axes.empty()) return side;
  const Shape& wanted = context.facts.shape(*other.value).known();
  InnerValues inner(reader, context);
  std::vector<int64_t> numbers(side.roles.size(), 1);
  for (const AxisPair& pair : axes) numbers[pair.own] = wanted[pair.wanted].is_constant() ? wanted[pair.wanted].value() : 0;
  if (std::ranges::find(numbers, 0) == numbers.end())
    return {inner.build().node("Expand", {side.value, inner.build().ints(numbers)}), side.roles, side.order};
  std::vector<Value*> sizes(side.roles.size(), inner.build().ints({1}));
  for (const AxisPair& pair : axes)
    sizes[pair.own] = wanted[pair.wanted].is_constant() ? inner.build().ints({wanted[pair.wanted].value()})
                                                        : inner.size(*other.value, static_cast<int64_t>(pair.wanted));
  return {inner.build().node("Expand", {side.value, inner.concat(sizes, 0)}), side.roles, side.order};
}

}  // namespace

ProductSide broadcast_query(const ProductSide& query, const ProductSide& key, Node& reader, MatchContext& context) {
  return expanded(query, broadcast_axes(query, key, context.facts), key, reader, context);
}

ProductSide broadcast_leading(const ProductSide& operand, const ProductSide& query, Node& reader, MatchContext& context) {
  std::vector<AxisPair> axes = axes_beside_others(operand, query, Role::kBatch, context.facts);
  const std::vector<AxisPair> heads = outer_shared_heads(operand, query, context.facts);
  axes.insert(axes.end(), heads.begin(), heads.end());
  return expanded(operand, axes, query, reader, context);
}

void broadcast_heads(ProductSide& key, ProductSide& value, const ProductSide& query, const ProductSide& output, Node& reader,
                     MatchContext& context) {
  const ProductSide own_key = with_all_heads(key, query, reader, context);
  const ProductSide own_value = with_all_heads(value, output, reader, context);
  const auto of_key = shared_heads(own_key, query, context.facts), of_value = shared_heads(own_value, output, context.facts);
  if (of_key.empty() == of_value.empty()) return;
  if (!of_key.empty()) key = expanded(own_key, of_key, query, reader, context);
  if (!of_value.empty()) value = expanded(own_value, of_value, output, reader, context);
}

}  // namespace attn_opt
