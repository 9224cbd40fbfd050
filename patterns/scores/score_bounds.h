// Bounds of the scores, and what is subtracted so that they stay in bounds.
//
//   Max(scores, lowest), Clip from below          a floor below every score: gives masks that add up to -inf a finite value
//   Clip(scores, -50000, 50000), Max, Min         a clamp that scores are assumed to lie within
//   Where(IsNaN(scores), 0, scores)               what is not finite becomes a number
//   scores - ReduceMax(scores)                    of each row or of all scores, also a mean, in whatever type: softmax does not
//   see it
#pragma once

#include "patterns/scores/peel_steps.h"

namespace attn_opt {

/// Max, Min, Clip. Misses: "scores.floor", "scores.floor-below-scale".
Ways peel_bound(Node& node, const ScoreWalk& walk, MatchContext& context);

/// NODE, a Where, if it gives scores that are not finite another number. Misses: "scores.operator", and those of peel_bound().
Ways peel_replaced(Node& node, const ScoreWalk& walk, MatchContext& context);

/// NODE, a Sub, if it lowers scores by their own maximum, minimum or mean; nullopt if it does not.
std::optional<ScoreWalk> peel_maximum(Node& node, const ScoreWalk& walk, MatchContext& context);

/// Logarithms of a softmax of scores, or of their exponentials: the scores, but for a number that is the same for all keys of a
/// row. Misses: "scores.operator", "scores.sinks".
Ways peel_logarithm(Node& node, const ScoreWalk& walk, MatchContext& context);

}  // namespace attn_opt
