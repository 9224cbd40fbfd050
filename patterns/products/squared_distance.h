// Squared distances of queries and keys as scores.
#pragma once

#include "patterns/scores/peel_steps.h"

namespace attn_opt {

/// What VALUE is the square of, by a Mul or a Pow; null if it is none.
Value* root_of_square(Value& value, Facts& facts);

/// True if NODE makes distances, squared or not, of all pairs of two kinds of rows.
bool makes_distances(const Node& node, Facts& facts);

/// NODE, which adds up squares: of differences of rows, the product of these and what each of them adds.
///
///   |q - k|^2  =>  -2 q k^T + |q|^2 + |k|^2
Ways peel_squared_distance(Node& node, const ScoreWalk& walk, MatchContext& context);

/// The sum of squares that VALUE is the square of the root of, made where the graph has none; null if it is none.
///
///   ReduceL2(x)^2  =>  ReduceSumSquare(x)      Sqrt(ReduceSum(x^2))^2  =>  ReduceSum(x^2)
Value* square_of_root(Value& value, MatchContext& context);
/// NODE, which makes a square_of_root().
Ways peel_power(Node& node, const ScoreWalk& walk, MatchContext& context);

}  // namespace attn_opt
