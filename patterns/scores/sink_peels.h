// Sinks beside the scores, of what is cut off behind the softmax, or of one that is written out.
#pragma once

#include <vector>

#include "patterns/scores/peel_steps.h"

namespace attn_opt {

/// A Concat of scores and sinks, at either end or at both, or of scores of several keys. Misses: "scores.operator",
/// "scores.sinks".
Ways peel_concat(Node& node, const ScoreWalk& below, MatchContext& context);

/// A Pad of scores: sinks of one number, or nothing where that is -inf. The same misses.
Ways peel_padding(Node& node, const ScoreWalk& below, MatchContext& context);

/// COLUMNS that the softmax of WALK, which begins there, runs over as well, placed as its terms are. Misses: "scores.sinks",
/// "scores.transpose".
Matched<JoinedSinks> sinks_beside(std::vector<Value*> columns, const ScoreWalk& walk, MatchContext& context);

}  // namespace attn_opt
