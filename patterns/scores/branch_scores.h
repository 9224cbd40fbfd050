// Scores that an If chooses, of branches that compute them element by element of what the graph around has:
//
//   If(c, m ? x : -inf, x)  =>  c ? (m ? x : -inf) : x
#pragma once

#include "patterns/scores/peel_steps.h"

namespace attn_opt {

/// Misses: "scores.operator"; those of peel_form().
Ways peel_branches(Node& node, const ScoreWalk& walk, MatchContext& context);

}  // namespace attn_opt
