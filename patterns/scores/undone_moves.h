// Axes of scores that are moved, and moved back behind what is done to each element there: that is done where they lay.
//
//   M'(f(M(S), m))  =>  f(S, M'(m))      where M and M' are Reshapes and Transposes, M' undoes M, and f is elementwise
#pragma once

#include "attn_opt/pattern.h"

namespace attn_opt {

/// What LAST, a Reshape or Transpose, makes, by what is elementwise above it and the moves right above itself, with none of
/// these; null if they undo no others, or no axis there is that of the KEYS, an axis of what LAST makes.
Value* with_moves_undone(Node& last, size_t keys, MatchContext& context);

}  // namespace attn_opt
