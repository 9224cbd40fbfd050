// Scores of which some rows, keys, heads or batch elements are picked.
//
//   before   Gather(Q K^T * scale + mask, rows) ─ Softmax      after   Gather(Q, rows) K^T * scale + Gather(mask, rows) ─
//   Softmax
//
// What picks along an axis commutes with what is done to each element, with Transposes, and with a product that has the axis.
#pragma once

#include <optional>

#include "patterns/scores/peel_steps.h"

namespace attn_opt {

/// The axis of its source along which alone PART was picked; nullopt if that is not known, or it is anything else.
std::optional<size_t> picked_axis(const Value& part, Facts& facts);

/// What is picked of WHOLE along AXIS as PART is, which has a picked_axis().
Value* picked_as(const Value& part, Value& whole, size_t axis, MatchContext& context);

/// Misses: "scores.operator".
Ways peel_selection(Node& node, const ScoreWalk& walk, MatchContext& context);

}  // namespace attn_opt
