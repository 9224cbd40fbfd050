// Scores of which a Reshape parts an axis that one above had made of several, as heads that share keys, with masks in between:
//
//   Reshape(f(Reshape(X (B, G, R, L, S)) (B, G * R, L, S), m (B, 1, L, S)))  =>  f(X, Reshape(m) (B, 1, 1, L, S))
#pragma once

#include "attn_opt/pattern.h"

namespace attn_opt {

/// What RESHAPE makes, with axes parted in front of what acts in places or moves axes above it, up to where they are taken for
/// one; null if it parts none or that is not reached.
Value* with_axes_parted(Node& reshape, MatchContext& context);

}  // namespace attn_opt
