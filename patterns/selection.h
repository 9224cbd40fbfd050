// What chooses between two values by a mask, spelled without Where, or between scores and the scores plus a number.
//
//   Add(Mul(Cast(mask), x), Mul(Cast(Not(mask)), y))   Where(mask, x, y), as tf2onnx writes it for operands that broadcast
//   Where(mask, scores, scores + number)               scores + Where(mask, 0, number)
#pragma once

#include "patterns/peel_steps.h"

namespace attn_opt {

/// The Where that NODE, an Add, stands for, as an unplaced node; null if it stands for none.
Value* selected_by_sum(Node& node, const ScoreWalk& walk, MatchContext& context);

/// The walk behind NODE, a Where between scores and the same scores plus a number; nullopt if it is none.
std::optional<Ways> peel_shifted_scores(Node& node, const ScoreWalk& walk, MatchContext& context);

}  // namespace attn_opt
