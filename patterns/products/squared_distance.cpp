#include "patterns/products/squared_distance.h"

#include <algorithm>

#include "attn_opt/canonical.h"
#include "patterns/inner_values.h"
#include "patterns/joined_parts.h"
#include "src/match/shape_rules/reduced_axis.h"

namespace attn_opt {
namespace {

/// What NODE adds up the squares of along its last axis, which it does not keep; null if it adds up anything else.
Value* squared_in(const Node& node, Facts& facts) {
  const MaybeShape shape = node.input(0) ? facts.shape(*node.inputs[0]) : nullptr;
  if (!shape || shape->size() < 3 || node.int_attribute("keepdims", 1) != 0) return nullptr;
  if (reduced_axis(node, shape->size(), facts) != shape->size() - 1) return nullptr;
  if (node.is("ReduceSumSquare")) return node.inputs[0];
  return root_of_square(*node.inputs[0], facts);
}

/// VALUE without the axis PLACE from the last, which has the size 1; null if it has not, or is of other RANK.
Value* without_axis(Value& value, size_t rank, size_t place, InnerValues& inner, Facts& facts) {
  const MaybeShape shape = facts.shape(value);
  if (!shape || shape->size() != rank || !(*shape)[rank - 1 - place].is(1)) return nullptr;
  return inner.build().along("Squeeze", value, {static_cast<int64_t>(rank - 1 - place)});
}

Value* squares_of(Value& rows, InnerValues& inner) {
  return inner.build().node("ReduceSumSquare", {&rows, inner.build().ints({-1})});
}

using Operands = std::array<Value*, 2>;

/// The squared distances of rows that the operands of DIFFERENCE hold, one of them of queries and one of keys; null if they
/// hold others.
Value* distances(const Operands& difference, size_t rank, InnerValues& inner, Facts& facts) {
  for (const size_t at : {0, 1}) {
    Value* queries = without_axis(*difference[at], rank, 1, inner, facts);
    Value* keys = queries ? without_axis(*difference[1 - at], rank, 2, inner, facts) : nullptr;
    if (!keys) continue;
    Value* product = inner.build().node("MatMul", {queries, inner.swapped(keys, rank - 1)});
    Value* of_rows = inner.sum(inner.scaled(product, -2), squares_of(*queries, inner));
    return inner.sum(of_rows, inner.swapped(squares_of(*keys, inner), rank - 1));
  }
  return nullptr;
}

/// What adds up squares of the same rows as DIFFERENCE, among what WALK adds to the scores: with it the product is made anew of
/// every feature, and nothing is spared. Null if there is none.
const Node* other_squares(const Operands& difference, const ScoreWalk& walk, Facts& facts) {
  for (const ScoreTerm& term : walk.terms) {
    const Node* node = canonical(*term.value, facts).producer;
    const Value* squared = node && (node->is("ReduceSum") || node->is("ReduceSumSquare")) ? squared_in(*node, facts) : nullptr;
    const Node* rows = squared ? squared->producer : nullptr;
    if (rows && std::ranges::is_permutation(rows->inputs, difference)) return node;
  }
  return nullptr;
}

/// The sum of squares that NODE is the root of; null if it is the root of anything else.
Value* sum_under_root(Node& node, MatchContext& context) {
  if (node.is("ReduceL2") && node.input(0)) {
    return InnerValues(node, context).again(node, "ReduceSumSquare", {node.inputs.begin(), node.inputs.end()});
  }
  Value* under = node.is("Sqrt") && node.input(0) ? &canonical(*node.inputs[0], context.facts) : nullptr;
  return under && under->producer && squared_in(*under->producer, context.facts) ? under : nullptr;
}

}  // namespace

Value* root_of_square(Value& value, Facts& facts) {
  const Node* square = canonical(value, facts).producer;
  if (!square || !square->input(0) || !square->input(1)) return nullptr;
  Value& base = canonical(*square->inputs[0], facts);
  const bool multiplies = square->is("Mul") && &base == &canonical(*square->inputs[1], facts);
  return multiplies || (square->is("Pow") && facts.uniform(*square->inputs[1]) == 2.0) ? &base : nullptr;
}

Ways peel_squared_distance(Node& node, const ScoreWalk& walk, MatchContext& context) {
  Value* squared = squared_in(node, context.facts);
  const auto difference = squared ? operands_of_difference(canonical(*squared, context.facts), context.facts) : std::nullopt;
  InnerValues inner(node, context);
  Value* scores =
      difference ? distances(*difference, context.facts.shape(*squared).known().size(), inner, context.facts) : nullptr;
  if (!scores) return missed("scores.operator", &node, node.op(), walk.peeled);
  ATTN_OPT_MATCH(const ScoreWalk whole, settled(walk, context));
  if (const Node* other = other_squares(*difference, whole, context.facts))
    return missed("scores.operator", other, other->op(), walk.peeled);
  ScoreWalk next = step(whole, *scores, node.op() + "(distances)");
  next.cancels_norms = true;
  next.hides_infinity = true;  // of (q - k)^2, where |k|^2 - 2 q k is Inf - Inf
  return std::vector{std::move(next)};
}

bool makes_distances(const Node& node, Facts& facts) {
  Value* squared = node.is("ReduceL2") && node.input(0) ? node.inputs[0] : squared_in(node, facts);
  const auto difference = squared ? operands_of_difference(canonical(*squared, facts), facts) : std::nullopt;
  if (!difference) return false;
  const MaybeShape one = facts.shape(*(*difference)[0]), other = facts.shape(*(*difference)[1]);
  const auto has_unit = [](const MaybeShape& shape, size_t axis) {
    return shape && shape->size() > axis && from_last(*shape, axis).is(1);
  };
  return (has_unit(one, 1) && has_unit(other, 2)) || (has_unit(one, 2) && has_unit(other, 1));
}

Value* square_of_root(Value& value, MatchContext& context) {
  Value* root = root_of_square(value, context.facts);
  return root && root->producer ? sum_under_root(*root->producer, context) : nullptr;
}

Ways peel_power(Node& node, const ScoreWalk& walk, MatchContext& context) {
  Value* sum = square_of_root(*node.outputs[0], context);
  if (!sum) return missed("scores.operator", &node, node.op(), walk.peeled);
  return std::vector{step(walk, *sum, node.op() + "(root)")};
}

}  // namespace attn_opt
