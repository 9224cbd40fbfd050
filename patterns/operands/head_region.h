// Repetition of heads commutes with what acts within a head: f(repeat(x)) = repeat(f(x)).
//
//   before   x ─ Unsqueeze ─ Expand ─ Reshape ─ f ─ VALUE        after   x ─ f ─ copies of it are VALUE
//
// f is a region of nodes: elementwise ones whose other operands are the same for all heads, those that cut, join, reduce or
// normalise other axes, Transposes.
#pragma once

#include <optional>

#include "attn_opt/pattern.h"
#include "patterns/operands/axis_copies.h"

namespace attn_opt {

/// What VALUE, whose heads lie on AXIS, holds copies of once its region is written again on heads that are not repeated: new
/// nodes. nullopt if it has no such region, or if others read what the region makes, which would then be computed twice.
std::optional<AxisCopies> copies_of_region(Value& value, size_t axis, MatchContext& context);

}  // namespace attn_opt
