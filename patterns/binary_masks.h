// Masks of floats that a caller gives, as Megatron's: scores are multiplied with them, and fills with what they are less
// than 1.
//
//   s m - (1 - m) 1e4  =>  m ? s : -1e4
//
// That m is 0 or 1 is assumed: masks-binary.
#pragma once

#include <functional>

#include "attn_opt/pattern.h"

namespace attn_opt {

/// What MATCH finds where the factors of scores that it stopped at with MISS hold ones and zeros; the miss where these are no
/// masks that a caller may give, or that is of no use.
Matched<Match> match_with_binary_masks(Miss miss, MatchContext& context, const std::function<Matched<Match>()>& match);

}  // namespace attn_opt
