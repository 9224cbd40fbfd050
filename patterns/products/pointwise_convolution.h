// Scores that a convolution makes of single points: its filters are the queries.
//
//   Conv(X (B, C, H, W), F (M, C, 1, 1), b (M))  =>  F (M, C) · X (B, C, H * W) + b (M, 1), with the points on the axes of X
//
// What is added is the same for all keys: the softmax does not see it where it is finite.
#pragma once

#include "patterns/scores/peel_steps.h"

namespace attn_opt {

/// CONVOLUTION as that product. Miss "scores.operator": it takes more than one point, or fewer than all features, or its
/// filters are the keys.
Ways peel_convolution(Node& convolution, const ScoreWalk& walk, MatchContext& context);

}  // namespace attn_opt
