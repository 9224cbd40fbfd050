#include "src/exec/interleave.h"

#include <cstring>

#include "src/exec/vector_clones.h"
#include "src/exec/vector_math.h"

namespace attn_opt {
namespace {

constexpr int kSide = VectorOf<float>::kSize;
using Vec = VectorOf<float>::Vec;

/// The 8 x 8 elements of BLOCK, transposed. The loops are unrolled for BLOCK to lie in registers.
ATTN_OPT_INLINE void transpose(Vec (&block)[kSide]) {
  Vec pairs[kSide], fours[kSide];
#pragma GCC unroll 8
  for (int i = 0; i < kSide; i += 2) {
    pairs[i] = __builtin_shufflevector(block[i], block[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    pairs[i + 1] = __builtin_shufflevector(block[i], block[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
#pragma GCC unroll 8
  for (int i = 0; i < kSide; ++i) {
    const int pair = i / 4 * 4 + i % 4 / 2;
    fours[i] = i % 2 == 0 ? __builtin_shufflevector(pairs[pair], pairs[pair + 2], 0, 1, 8, 9, 4, 5, 12, 13)
                          : __builtin_shufflevector(pairs[pair], pairs[pair + 2], 2, 3, 10, 11, 6, 7, 14, 15);
  }
#pragma GCC unroll 8
  for (int i = 0; i < kSide / 2; ++i) {
    block[i] = __builtin_shufflevector(fours[i], fours[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    block[i + 4] = __builtin_shufflevector(fours[i], fours[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

template <bool kAdds, class C>
ATTN_OPT_INLINE void interleave_from(int64_t first, const C* const* rows, int lanes, int64_t count, C factor, C* panel) {
  for (int64_t j = first; j < count; ++j) {
    for (int lane = 0; lane < lanes; ++lane) {
      C& to = panel[j * lanes + lane];
      to = kAdds ? to + rows[lane][j] : factor * rows[lane][j];
    }
  }
}

/// Eight rows at a time: more at once, a power of two apart, put each other out of the nearest cache.
template <bool kAdds>
ATTN_OPT_INLINE void interleave_all(const float* const* rows, int lanes, int64_t count, float factor, float* panel) {
  const int64_t whole = lanes % kSide == 0 ? count / kSide * kSide : 0;
  for (int first = 0; first < lanes; first += kSide) {
    for (int64_t j = 0; j < whole; j += kSide) {
      Vec block[kSide];
#pragma GCC unroll 8
      for (int i = 0; i < kSide; ++i) std::memcpy(&block[i], rows[first + i] + j, sizeof(Vec));
      transpose(block);
#pragma GCC unroll 8
      for (int i = 0; i < kSide; ++i) {
        float* to = panel + (j + i) * lanes + first;
        Vec before{};
        if (kAdds) std::memcpy(&before, to, sizeof(Vec));
        block[i] = kAdds ? before + block[i] : block[i] * factor;
        std::memcpy(to, &block[i], sizeof(Vec));
      }
    }
  }
  interleave_from<kAdds>(whole, rows, lanes, count, factor, panel);
}

template <class C>
ATTN_OPT_INLINE void deinterleave_from(int64_t first, const C* panel, int lanes, int64_t count, const C* factors,
                                       C* const* rows) {
  for (int64_t j = first; j < count; ++j) {
    for (int lane = 0; lane < lanes; ++lane) rows[lane][j] = factors[lane] * panel[j * lanes + lane];
  }
}

/// Row by row, as memory is read fastest. A copy of so few elements is no loop where their count is known.
template <int kTile, class C>
ATTN_OPT_INLINE void pack(const C* rows, int64_t stride, int64_t count, int64_t width, C* tiles) {
  const int64_t whole = width / kTile * kTile;
  for (int64_t j = 0; j < count; ++j, rows += stride, tiles += kTile) {
    const C* from = rows;
    C* to = tiles;
    for (; from < rows + whole; from += kTile, to += kTile * count) std::memcpy(to, from, kTile * sizeof(C));
    const auto copy_rest = [&]<int kColumns>() __attribute__((always_inline)) {
      if (((width - whole) & kColumns) == 0) return;
      std::memcpy(to, from, kColumns * sizeof(C));
      from += kColumns;
      to += kColumns;
    };
    if constexpr (kTile > 16) copy_rest.template operator()<16>();
    copy_rest.template operator()<8>();
    copy_rest.template operator()<4>();
    copy_rest.template operator()<2>();
    copy_rest.template operator()<1>();
  }
}

template <class C>
ATTN_OPT_INLINE void pack_by(int tile, const C* rows, int64_t stride, int64_t count, int64_t width, C* tiles) {
  if (tile == 6) {
    pack<6>(rows, stride, count, width, tiles);
  } else if (tile == 8) {
    pack<8>(rows, stride, count, width, tiles);
  } else if (tile == 32) {
    pack<32>(rows, stride, count, width, tiles);
  } else {
    pack<12>(rows, stride, count, width, tiles);
  }
}

}  // namespace

ATTN_OPT_VECTOR_CLONES void interleave(const float* const* rows, int lanes, int64_t count, float factor, float* panel) {
  interleave_all<false>(rows, lanes, count, factor, panel);
}

ATTN_OPT_VECTOR_CLONES void add_interleaved(const float* const* rows, int lanes, int64_t count, float* panel) {
  interleave_all<true>(rows, lanes, count, 1, panel);
}

ATTN_OPT_VECTOR_CLONES void deinterleave(const float* panel, int lanes, int64_t count, const float* factors,
                                         float* const* rows) {
  const int64_t whole = lanes % kSide == 0 ? count / kSide * kSide : 0;
  for (int first = 0; whole > 0 && first < lanes; first += kSide) {
    Vec factor;
    std::memcpy(&factor, factors + first, sizeof(Vec));
    for (int64_t j = 0; j < whole; j += kSide) {
      Vec block[kSide];
#pragma GCC unroll 8
      for (int i = 0; i < kSide; ++i) {
        std::memcpy(&block[i], panel + (j + i) * lanes + first, sizeof(Vec));
        block[i] *= factor;
      }
      transpose(block);
#pragma GCC unroll 8
      for (int i = 0; i < kSide; ++i) std::memcpy(rows[first + i] + j, &block[i], sizeof(Vec));
    }
  }
  deinterleave_from(whole, panel, lanes, count, factors, rows);
}

void interleave(const double* const* rows, int lanes, int64_t count, double factor, double* panel) {
  interleave_from<false>(0, rows, lanes, count, factor, panel);
}

void add_interleaved(const double* const* rows, int lanes, int64_t count, double* panel) {
  interleave_from<true>(0, rows, lanes, count, 1.0, panel);
}

void deinterleave(const double* panel, int lanes, int64_t count, const double* factors, double* const* rows) {
  deinterleave_from(0, panel, lanes, count, factors, rows);
}

ATTN_OPT_VECTOR_CLONES void pack_tiles(const float* rows, int64_t stride, int64_t count, int64_t width, int tile,
                                       float* tiles) {
  pack_by(tile, rows, stride, count, width, tiles);
}

void pack_tiles(const double* rows, int64_t stride, int64_t count, int64_t width, int tile, double* tiles) {
  pack_by(tile, rows, stride, count, width, tiles);
}

}  // namespace attn_opt
