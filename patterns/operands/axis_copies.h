// Axes whose entries are copies of entries of another value, by whatever operators: Gather, Split and Concat, Slices, Tile,
// Resize.
#pragma once

#include <optional>

#include "attn_opt/facts.h"
#include "attn_opt/graph.h"
#include "attn_opt/internal/axis_map.h"

namespace attn_opt {

/// Entry i along AXIS is entry (i / EACH) % KEPT of SOURCE, which has KEPT entries there. All other axes are those of SOURCE.
struct AxisCopies {
  Value* source = nullptr;
  size_t axis = 0;
  int64_t kept = 0, each = 1, rounds = 1;
};

/// The nearest value that VALUE, which one of the above makes, holds copies of; nullopt if there is none, or no known number of
/// entries.
std::optional<AxisCopies> copies_along_axis(Value& value, Facts& facts);

/// The map of COPIES.source where AXES is that of the copies, which have the shape AFTER; nullopt if the axes cannot be told,
/// or if something else is repeated than each head in turn.
std::optional<AxisMap> axes_before_copies(const AxisMap& axes, const Shape& after, const AxisCopies& copies);

}  // namespace attn_opt
