// A product with V, whose rows may be moved and mapped linearly (row_maps.h), divided by the sums of its exponentials.
//
//   move(e V) / move(r)  =>  move((e V) / r)      ((e V) W) / r  =>  ((e V) / r) W        r: placed beside e, the sum of its
//   rows
#pragma once

#include <optional>

#include "attn_opt/pattern.h"
#include "patterns/softmax/softmax_anchor.h"

namespace attn_opt {

/// The softmax that NODE ends by dividing its input NUMERATOR; nullopt if it ends none.
std::optional<SoftmaxSite> divided_moved_product(Node& node, size_t numerator, MatchContext& context);

/// Enters in SOFTMAX what its product is moved to before it is divided, by sums that are known to be its rows' wherever they
/// lie; false if they are not.
bool moved_before_division(SoftmaxSite& softmax, MatchContext& context);

/// Enters in SDPA the outputs of SOFTMAX, whose product, or that divided, is MADE, and the steps that stand before its
/// division. Miss "softmax.divided-late": others read Y before it is divided.
Matched<void> enter_outputs(const SoftmaxSite& softmax, const OutputView& made, Sdpa& sdpa, MatchContext& context);

}  // namespace attn_opt
