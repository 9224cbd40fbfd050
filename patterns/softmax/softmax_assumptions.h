// What must hold for the words of a softmax to equal the operator.
#pragma once

#include "attn_opt/pattern.h"
#include "patterns/scores/score_walk.h"
#include "patterns/softmax/softmax_anchor.h"

namespace attn_opt {

/// Enters in SDPA what SOFTMAX of SCORES takes for granted: scores-finite, exp-in-range.
void assume_of_softmax(const SoftmaxSite& softmax, const ScoreWalk& scores, Sdpa& sdpa, Facts& facts);

/// Misses "softmax.less-mean": the exponents of SOFTMAX are less by a number of all scores of their row, and a term of SDPA
/// hides some, which takes the row out of exp()'s range in the model.
Matched<void> check_lowering(const SoftmaxSite& softmax, const Sdpa& sdpa, Facts& facts);

}  // namespace attn_opt
