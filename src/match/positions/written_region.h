// ScatterND that writes elements beside each other, each in its place: along each axis those from one on. TorchScript spells
// y[:, :, a:, b:] = x so:
//
//   Range(0, sizes[i])[first[i]:] ─ Reshape ─ Expand ─ Unsqueeze(-1) ─┐ for each axis i
//                                                data ─┐              ├─ Concat ─┐
//                                                      ├─ ScatterND ──┘          │       is x where a and b are 0,
//                                                   x ─┘    └─ indices ──────────┘       whatever data holds
#pragma once

#include <optional>

#include "attn_opt/facts.h"
#include "attn_opt/graph.h"

namespace attn_opt {

/// UPDATES in the place of the elements from FIRST on, along each axis.
struct WrittenRegion {
  Value* updates = nullptr;
  Shape first;
};

/// What NODE, a ScatterND, writes, and where; nullopt if it moves an element, or it is not known.
std::optional<WrittenRegion> written_region(const Node& node, Facts& facts);

/// What NODE writes over all of its data; null if it leaves an element.
Value* written_over_all(const Node& node, Facts& facts);

}  // namespace attn_opt
