// Masks of floats that a caller gives.
//
// Scores are multiplied with them, and fills with what they are less than 1, as Megatron does. That m is 0 or 1 is assumed:
// masks-binary.
//
//   s m - (1 - m) 1e4  =>  m ? s : -1e4
//
// Weights are multiplied with them and divided by their sum, as in Luong's attention. That m is nowhere below 0 is assumed:
// masks-not-negative.
//
//   exp(s) m / sum(exp(s) m)  =>  softmax(s + log(m))
#pragma once

#include <functional>

#include "attn_opt/pattern.h"

namespace attn_opt {

/// What MATCH finds at ANCHOR; where that is nothing, what it finds if the factors of scores, or of weights that ANCHOR
/// divides, are such masks.
Matched<Match> match_with_given_floats(const Node& anchor, MatchContext& context, const std::function<Matched<Match>()>& match);

}  // namespace attn_opt
