// What the softmax need take of its scores, by what is left behind it of what it makes.
#pragma once

#include "patterns/probabilities/probability_walk.h"

namespace attn_opt {

/// Makes SOFTMAX take the scores alone of which WALK leaves something. Miss: "probabilities.operator".
Matched<void> take_kept_scores(const ProbabilityWalk& walk, SoftmaxSite& softmax, MatchContext& context);

}  // namespace attn_opt
