// A tile of a matrix product in registers.
#pragma once

#include <cstdint>

#include "src/exec/vector_clones.h"
#include "src/exec/vector_math.h"

namespace attn_opt {

struct DoNothing {
  ATTN_OPT_INLINE void operator()() const {}
};

/// ROWS x (kVectors * lanes of a vector) sums, in registers.
template <class Vectors, int kVectors, int kRows>
struct RegisterSums {
  using Vec = typename Vectors::Vec;
  using C = typename Vectors::Element;
  static constexpr int kLanes = kVectors * Vectors::kSize;
  Vec at[kRows][kVectors];

  /// sums[i][lane] = over DEPTH: a[i * row_stride + l * depth_stride] * b[l][lane]. Rows share a pointer in fours: a pointer
  /// for each would be more than there are registers. Calls BESIDE for each L.
  template <class Beside = DoNothing>
  ATTN_OPT_INLINE void multiply(int64_t depth, const C* a, int64_t row_stride, int64_t depth_stride, const C* b,
                                Beside beside = {}) {
    constexpr int kGroups = (kRows + 3) / 4;
    const C* groups[kGroups];
#pragma GCC unroll 3
    for (int i = 0; i < kGroups; ++i) groups[i] = a + 4 * i * row_stride;
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) at[i][v] = Vec{};
    }
    for (int64_t l = 0; l < depth; ++l, b += kLanes) {
      Vec in[kVectors];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) in[v] = load(b, v);
#pragma GCC unroll 12
      for (int i = 0; i < kRows; ++i) {
        const C x = groups[i / 4][i % 4 * row_stride];
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) at[i][v] += x * in[v];
      }
#pragma GCC unroll 3
      for (int i = 0; i < kGroups; ++i) groups[i] += depth_stride;
      beside();
    }
  }

  ATTN_OPT_INLINE static Vec& load(C* x, int64_t v) { return reinterpret_cast<Vec*>(x)[v]; }
  ATTN_OPT_INLINE static const Vec& load(const C* x, int64_t v) { return reinterpret_cast<const Vec*>(x)[v]; }
};

}  // namespace attn_opt
