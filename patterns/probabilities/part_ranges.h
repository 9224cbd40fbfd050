// Parts of probabilities that are cut along one axis.
#pragma once

#include <vector>

#include "attn_opt/facts.h"
#include "attn_opt/graph.h"

namespace attn_opt {

/// The keys, queries, heads or batch elements from FIRST on that a part of probabilities has.
struct PartRange {
  Value* part = nullptr;
  Dim first = 0, count = 0;
  bool drops_axis = false;  ///< it has the axis no more
};

/// The parts along AXIS that NODE, a Slice, Split or Gather, makes; empty if it does anything else.
std::vector<PartRange> parts_by(const Node& node, size_t axis, Facts& facts);

/// PARTS in their order along the axis that is cut, if they are all of its COUNT, each once; else none.
std::vector<PartRange> in_order(std::vector<PartRange> parts, const Dim& count);

}  // namespace attn_opt
