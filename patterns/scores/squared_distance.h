// Squared distances of queries and keys as scores.
#pragma once

#include "patterns/scores/peel_steps.h"

namespace attn_opt {

/// What VALUE is the square of, by a Mul or a Pow; null if it is none.
Value* root_of_square(Value& value, Facts& facts);

/// NODE, which adds up squares: of differences of rows, the product of these and what each of them adds.
///
///   |q - k|^2  =>  -2 q k^T + |q|^2 + |k|^2
Ways peel_squared_distance(Node& node, const ScoreWalk& walk, MatchContext& context);

}  // namespace attn_opt
