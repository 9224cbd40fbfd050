// Rows of zeros at the ends of V: what the probabilities have for them has no part in the product, as sinks have none.
//
//   P Pad(V)  =>  (P without those columns) V
#pragma once

#include <optional>

#include "patterns/probabilities/probability_walk.h"

namespace attn_opt {

/// WALK as it would end if the model cut off the columns that zeros of V are for; nullopt if there are none, or not known, or
/// if the probabilities were changed before.
std::optional<ProbabilityWalk> without_zero_rows(const ProbabilityWalk& walk, const SoftmaxSite& softmax,
                                                 MatchContext& context);

}  // namespace attn_opt
