// Linear maps of rows of Y: what makes of each of them, alone, a row that is as many times as large where that is.
//
//   (y W) / r  =>  (y / r) W      (y * f) / r  =>  (y / r) * f      -y / r  =>  -(y / r)
//   move(y) / move(r)  =>  move(y / r)
//
// r: a number for each row; W: a matrix for all rows, heads or batches, or their own; f: anything that broadcasts to y.
#pragma once

#include <optional>
#include <vector>

#include "attn_opt/pattern.h"

namespace attn_opt {

/// NODE, and which of its inputs the rows are.
struct RowMap {
  Node* node = nullptr;
  size_t input = 0;

  Value& rows() const { return *node->inputs[input]; }
  bool moves() const;  ///< it does nothing else
};

/// How many of the inputs of NODE, the first ones, it may be such a map of. Cheap.
size_t inputs_mapped(const Node& node);
/// The axes of what MAP makes of rows of AXES, in which it maps all features of each row; nullopt where it does more, or less.
std::optional<AxisMap> axes_behind(const RowMap& map, const AxisMap& axes, MatchContext& context);
/// MAPS, each reading what the one before makes, of Y.
std::vector<OutputStep> steps_of(const std::vector<RowMap>& maps);

}  // namespace attn_opt
