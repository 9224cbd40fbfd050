// Constants whose elements follow from where they stand, told by their contents. Linear in their size.
#pragma once

#include <cmath>
#include <optional>

#include "src/match/positions/position_table.h"

namespace attn_opt {

/// True for a whole number that no double rounds.
inline bool is_integral(double number) { return std::abs(number) < 0x1p53 && std::nearbyint(number) == number; }

/// CONSTANT's numbers where they rise evenly along one axis and there is no other: arange.
std::optional<IndexForm> even_steps(const Tensor& constant);

/// CONSTANT where the last index less the one before it tells the number, which changes a few times at most: triangles,
/// bands.
std::optional<PositionTable> diagonal_steps(const Tensor& constant);

}  // namespace attn_opt
