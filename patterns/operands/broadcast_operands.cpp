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

/// SIDE with AXES at the size they have in OTHER.
ProductSide expanded(const ProductSide& side, const std::vector<AxisPair>& axes, const ProductSide& other, Node& reader,
                     MatchContext& context) {
  if (axes.empty()) return side;
  const Shape& wanted = context.facts.shape(*other.value).known();
  InnerValues inner(reader, context);
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

ProductSide broadcast_batch(const ProductSide& operand, const ProductSide& query, Node& reader, MatchContext& context) {
  std::vector<AxisPair> axes = broadcast_axes(operand, query, context.facts);
  std::erase_if(axes, [&](const AxisPair& pair) { return operand.roles[pair.own] != Role::kBatch; });
  const Shape& shape = context.facts.shape(*operand.value).known();
  bool has_batch = false;
  for (size_t axis = 0; axis < shape.size(); ++axis) has_batch |= operand.roles[axis] == Role::kBatch && !shape[axis].is(1);
  return has_batch ? expanded(operand, axes, query, reader, context) : operand;
}

}  // namespace attn_opt
