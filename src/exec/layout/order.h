// An order of all elements of a type, NaN included.
#pragma once

#include <cmath>
#include <compare>

#include "src/exec/dispatch.h"

namespace attn_opt {

/// Before, like or behind, with NaN behind all numbers and like itself.
template <class T>
std::weak_ordering order(const T& a, const T& b) {
  if constexpr (kIsFloat<T>) {
    const auto x = static_cast<Compute<T>>(a), y = static_cast<Compute<T>>(b);
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) <=> std::isnan(y);
    return std::weak_order(x + 0, y + 0);  // -0 + 0 is 0
  } else {
    return a <=> b;
  }
}

}  // namespace attn_opt
