// Sums of a part of scores that are written over that part, as PyTorch spells a[:, :, 1:, 1:] += b.
//
//   ScatterND(a, places, a[places] + b)                    =>  a + Pad(b)
//   ScatterND(a, places, Reshape(Reshape(a[places]) + b))  =>  a + Pad(Reshape(b))
//   ScatterND(a, places, a[places])                        =>  a
//   ScatterND(ScatterND(a, fewer, c), places, b)           =>  ScatterND(a, places, b)
//
// where the places are those from one on along each axis, the fewer ones among them.
#pragma once

#include "attn_opt/pattern.h"

namespace attn_opt {

/// The sum, made above NODE, that NODE is; null if it does anything else.
Value* summed_in_place(Node& node, MatchContext& context);

}  // namespace attn_opt
