// Operators that leave elements by their places alone, and have others in the place of the rest.
//
//   Trilu(a)  =>  Trilu(true) ? a : 0      Scatter(a, places, number)  =>  Scatter(false, places, true) ? number : a
#pragma once

#include "attn_opt/pattern.h"

namespace attn_opt {

/// True for these operators, of their first input.
bool lays_over(const Node& node);

/// The booleans that are true where NODE, which lays_over(), leaves its input if it is a Trilu, and else where it has others in
/// its place, made above READER. Null where shapes are not known.
Value* places_laid_over(const Node& node, Node& reader, MatchContext& context);

}  // namespace attn_opt
