// Scores whose leading axis is split, as products of operands of which it is split.
#pragma once

#include "attn_opt/pattern.h"

namespace attn_opt {

/// What RESHAPE makes of scores of three axes, with several in the place of the first, from their product on; null if that is
/// not reached, or it does more.
///
///   Reshape(f(a b^T, c))  =>  f(Reshape(a) Reshape(b)^T, Reshape(c)), f elementwise
Value* split_above(Node& reshape, MatchContext& context);

}  // namespace attn_opt
