// Which extreme values an additive mask may hold.
#pragma once

#include <cmath>
#include <optional>

#include "attn_opt/facts.h"
#include "attn_opt/graph.h"

namespace attn_opt {

/// Numbers that an additive mask may hold; by default any.
struct MaskContents {
  bool may_hold_lowest = true;  ///< the type's lowest finite value
  bool may_hold_minus_inf = true;
  double least = -INFINITY, greatest = INFINITY;  ///< of all else that it may hold
  bool holds_ends_alone = false;                  ///< of all else: LEAST and GREATEST, and nothing between them
  bool may_hold_nan = true;
};

/// What MASK, a floating value, may hold. Follows constants, fills, layout, Where, Cast, sums and products with constants, and
/// logarithms and inverses of ones and zeros, for a bounded number of nodes; beyond that everything is possible.
MaskContents mask_contents(Value& mask, Facts& facts);

/// The number that NODE, a Clip, bounds by as its input INDEX (1: min, 2: max) or, up to opset 10, its attribute; nullopt if it
/// is not known. What it lacks is the end of its type, which infinities become (ONNX Clip-6 to -13, numeric_limits::lowest(),
/// max()).
std::optional<double> clip_bound(const Node& node, int index, Facts& facts);

/// A fill at or below this swallows any score added to it.
double absorbing_fill(DataType type);

}  // namespace attn_opt
