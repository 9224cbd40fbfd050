// A product with V, whose rows may be moved and mapped linearly (row_maps.h), divided by the sums of its exponentials.
//
//   move(e V) / move(r)  =>  move((e V) / r)      ((e V) W) / r  =>  ((e V) / r) W        r: placed beside e, the sum of its
//   rows
#pragma once

#include <optional>

#include "attn_opt/pattern.h"
#include "patterns/probabilities/guard_meaning.h"
#include "patterns/softmax/softmax_anchor.h"

namespace attn_opt {

/// The softmax that NODE ends by dividing its input NUMERATOR; nullopt if it ends none.
std::optional<SoftmaxSite> divided_moved_product(Node& node, size_t numerator, MatchContext& context);

/// True if SOFTMAX's exponentials are divided behind the product of WALK; that may also be moved alone (take_summed()).
bool is_divided_late(const SoftmaxSite& softmax, const ProbabilityWalk& walk);

/// Takes what is divided by the sum of exponentials for what the product of READING makes. Miss "softmax.divided-late": the
/// sums are not known to be those of its rows, or the exponentials are changed before it.
Matched<void> divide_behind_product(SoftmaxSite& softmax, Reading& reading, MatchContext& context);

/// Enters what the model makes of the parts that it has the product of READING in, and may regroup.
void take_summed(Reading& reading, SoftmaxSite& softmax, Facts& facts);

/// Takes for the outputs of SDPA, which are those of the product of SOFTMAX, what is moved and mapped before it is divided: the
/// maps are steps. Miss "softmax.divided-late": others read Y before.
Matched<void> enter_moved_outputs(const SoftmaxSite& softmax, Sdpa& sdpa, MatchContext& context);

}  // namespace attn_opt
