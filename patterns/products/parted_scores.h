// Scores of which a Reshape parts axes right behind the product, as the queries of heads that share keys are multiplied at
// once.
//
//   Reshape(Q (B, G, L * R, D) K^T to (B, G, L, R, S))  =>  Einsum("bglrd,bgsd->bglrs", Reshape(Q), K)
#pragma once

#include "attn_opt/pattern.h"

namespace attn_opt {

/// What RESHAPE makes, with its axes parted above the product; null if it is not right behind one, but for numbers that all
/// scores are scaled or added to, or takes axes for one.
Value* parted_above(Node& reshape, MatchContext& context);

}  // namespace attn_opt
