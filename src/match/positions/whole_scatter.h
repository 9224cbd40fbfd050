// ScatterND that writes every element, each in its place, as TorchScript spells y[:, :, a:, b:] = x where a and b are 0:
//
//   Range(0, sizes[i]) ─ Reshape ─ Expand ─ Unsqueeze(-1) ─┐ for each axis i
//                                     data ─┐              ├─ Concat ─┐
//                                           ├─ ScatterND ──┘          │       is x, whatever data holds
//                                        x ─┘    └─ indices ──────────┘
#pragma once

#include "attn_opt/facts.h"
#include "attn_opt/graph.h"

namespace attn_opt {

/// What NODE, a ScatterND, writes over all of its data, in place; null if it leaves an element, moves one, or it is not known.
Value* written_over_all(const Node& node, Facts& facts);

}  // namespace attn_opt
