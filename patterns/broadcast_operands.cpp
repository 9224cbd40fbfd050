#include "patterns/broadcast_operands.h"

#include <algorithm>

#include "patterns/inner_values.h"

namespace attn_opt {
namespace {

/// The axes of SIDE of size 1 where OTHER, of the same leading roles, has another size; empty if the roles differ.
std::vector<size_t> broadcast_axes(const ProductSide& side, const ProductSide& other, Facts& facts) {
  const Shape &own = *facts.shape(*side.value), &wanted = *facts.shape(*other.value);
  if (own.size() < 3 || own.size() != wanted.size() ||
      !std::equal(side.roles.begin(), side.roles.end() - 2, other.roles.begin()))
    return {};
  std::vector<size_t> axes;
  for (size_t axis = 0; axis + 2 < own.size(); ++axis)
    if (own[axis].is(1) && !wanted[axis].is(1)) axes.push_back(axis);
  return axes;
}

/// SIDE with AXES at the size they have in OTHER.
ProductSide expanded(const ProductSide& side, const std::vector<size_t>& axes, const ProductSide& other, Node& reader,
                     MatchContext& context) {
  if (axes.empty()) return side;
  const Shape& wanted = *context.facts.shape(*other.value);
  InnerValues inner(reader, context);
  std::vector<Value*> sizes;
  for (size_t axis = 0; axis < wanted.size(); ++axis) {
    const bool widens = std::find(axes.begin(), axes.end(), axis) != axes.end();
    if (!widens || wanted[axis].is_constant()) sizes.push_back(inner.build().ints({widens ? wanted[axis].value() : 1}));
    else sizes.push_back(inner.size(*other.value, static_cast<int64_t>(axis)));
  }
  return {inner.build().node("Expand", {side.value, inner.concat(sizes, 0)}), side.roles};
}

}  // namespace

ProductSide broadcast_query(const ProductSide& query, const ProductSide& key, Node& reader, MatchContext& context) {
  return expanded(query, broadcast_axes(query, key, context.facts), key, reader, context);
}

ProductSide broadcast_batch(const ProductSide& operand, const ProductSide& query, Node& reader, MatchContext& context) {
  std::vector<size_t> axes = broadcast_axes(operand, query, context.facts);
  std::erase_if(axes, [&](size_t axis) { return operand.roles[axis] != Role::kBatch; });
  const Shape& shape = *context.facts.shape(*operand.value);
  bool has_batch = false;
  for (size_t axis = 0; axis + 2 < shape.size(); ++axis) has_batch |= operand.roles[axis] == Role::kBatch && !shape[axis].is(1);
  return has_batch ? expanded(operand, axes, query, reader, context) : operand;
}

}  // namespace attn_opt
