// A product with V, whose elements may be moved, divided by the sums of its exponentials.
//
//   move(e V) / move(r)  =>  move((e V) / r)        r: placed beside e, the sum of its rows
#pragma once

#include <optional>

#include "attn_opt/pattern.h"
#include "patterns/softmax/softmax_anchor.h"

namespace attn_opt {

/// The softmax that NODE ends by dividing its input NUMERATOR; nullopt if it ends none.
std::optional<SoftmaxSite> divided_moved_product(Node& node, size_t numerator, MatchContext& context);

}  // namespace attn_opt
