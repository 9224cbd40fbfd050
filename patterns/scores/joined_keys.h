// Scores of several keys side by side, which are those of one product of all keys: a cache whose scores are made by a product
// of their own, and segments of keys in general.
//
//   Concat(a * Q K^T, b * Q T^T)  =>  a * Q Concat(K, b / a * T)^T
#pragma once

#include "patterns/scores/peel_steps.h"

namespace attn_opt {

/// WALK above NODE, a Concat along the keys of scores that the same queries make. Miss "scores.operator": it joins anything
/// else.
Matched<ScoreWalk> peel_joined_keys(Node& node, const ScoreWalk& walk, MatchContext& context);

}  // namespace attn_opt
