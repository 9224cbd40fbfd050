// Sums of a part of scores that are written over that part, as PyTorch spells a[:, :, 1:, 1:] += b.
//
//   ScatterND(a, places, a[places] + b)  =>  a + Pad(b), where the places are those from one on along each axis
#pragma once

#include "attn_opt/pattern.h"

namespace attn_opt {

/// The sum, made above NODE, that NODE is; null if it does anything else.
Value* summed_in_place(Node& node, MatchContext& context);

}  // namespace attn_opt
