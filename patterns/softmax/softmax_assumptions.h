// What must hold for the words of a softmax to equal the operator.
#pragma once

#include "attn_opt/pattern.h"
#include "patterns/scores/score_walk.h"
#include "patterns/softmax/softmax_anchor.h"

namespace attn_opt {

/// Enters in SDPA what SOFTMAX of SCORES takes for granted: scores-finite, exp-in-range.
void assume_of_softmax(const SoftmaxSite& softmax, const ScoreWalk& scores, Sdpa& sdpa, Facts& facts);

}  // namespace attn_opt
