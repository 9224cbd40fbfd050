// How far numbers may lie apart that are read out of a graph and stand for the same.
#pragma once

namespace attn_opt {

/// Coefficients, factors and powers are the same up to this: constants of a graph are rounded, and multiplied up in any order.
inline constexpr double kSameNumber = 1e-6;

}  // namespace attn_opt
