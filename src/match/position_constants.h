// Constants whose elements follow from where they stand, told by their contents. Linear in their size.
#pragma once

#include <optional>

#include "src/match/position_table.h"

namespace attn_opt {

/// CONSTANT's numbers where they rise evenly along one axis and there is no other: arange.
std::optional<IndexForm> even_steps(const Tensor& constant);

/// CONSTANT where the last index less the one before it tells the number, which changes a few times at most: triangles,
/// bands.
std::optional<PositionTable> diagonal_steps(const Tensor& constant);

}  // namespace attn_opt
