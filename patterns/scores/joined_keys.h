// Scores side by side, which are those of one product: of several keys, as those of a cache that has a product of its own; of
// blocks of queries; of heads or batch elements that a loop goes through.
//
//   Concat(a * Q K^T, b * Q T^T)  =>  a * Q Concat(K, b / a * T)^T       along the keys
//   Concat(a * Q K^T, b * U K^T)  =>  a * Concat(Q, b / a * U) K^T       along the queries
//   Concat(a * Q K^T, b * U T^T)  =>  a * Concat(Q, U) Concat(K, b / a * T)^T       along heads or batch elements
#pragma once

#include "patterns/scores/peel_steps.h"

namespace attn_opt {

/// WALK above NODE, a Concat of scores that have what it does not join in common. Miss "scores.operator": it joins anything
/// else.
Matched<ScoreWalk> peel_joined_keys(Node& node, const ScoreWalk& walk, MatchContext& context);

}  // namespace attn_opt
