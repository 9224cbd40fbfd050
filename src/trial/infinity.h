// Infinity, as differences and draws write it.
#pragma once

#include <limits>

namespace attn_opt {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace attn_opt
