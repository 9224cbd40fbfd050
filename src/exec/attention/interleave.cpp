#include "src/exec/attention/interleave.h"

#include <cstring>

#include "src/exec/vector_clones.h"
#include "src/exec/vector_math.h"

namespace attn_opt {
namespace {

constexpr int kSide = VectorOf<float>::kSize;
using Vec = VectorOf<float>::Vec;

/// The 8 x 8 elements of BLOCK, transposed.
ATTN_OPT_INLINE void transpose(Vec (&block)[kSide]) {
  Vec pairs[kSide], fours[kSide];
  for (int i = 0; i < kSide; i += 2) {
    pairs[i] = __builtin_shufflevector(block[i], block[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    pairs[i + 1] = __builtin_shufflevector(block[i], block[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (int i = 0; i < kSide; i += 4) {
    for (int k = 0; k < 2; ++k) {
      fours[i + 2 * k] = __builtin_shufflevector(pairs[i + k], pairs[i + k + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      fours[i + 2 * k + 1] = __builtin_shufflevector(pairs[i + k], pairs[i + k + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  }
  for (int i = 0; i < kSide / 2; ++i) {
    block[i] = __builtin_shufflevector(fours[i], fours[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    block[i + 4] = __builtin_shufflevector(fours[i], fours[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

template <class C>
ATTN_OPT_INLINE void interleave_from(int64_t first, const C* const* rows, int lanes, int64_t count, C* panel) {
  for (int64_t j = first; j < count; ++j) {
    for (int lane = 0; lane < lanes; ++lane) panel[j * lanes + lane] = rows[lane][j];
  }
}

template <class C>
ATTN_OPT_INLINE void deinterleave_from(int64_t first, const C* panel, int lanes, int64_t count, C* const* rows) {
  for (int64_t j = first; j < count; ++j) {
    for (int lane = 0; lane < lanes; ++lane) rows[lane][j] = panel[j * lanes + lane];
  }
}

}  // namespace

ATTN_OPT_VECTOR_CLONES void interleave(const float* const* rows, int lanes, int64_t count, float* panel) {
  const int64_t whole = count / kSide * kSide;
  for (int64_t j = 0; j < whole; j += kSide) {
    for (int first = 0; first < lanes; first += kSide) {
      Vec block[kSide];
      for (int i = 0; i < kSide; ++i) std::memcpy(&block[i], rows[first + i] + j, sizeof(Vec));
      transpose(block);
      for (int i = 0; i < kSide; ++i) std::memcpy(panel + (j + i) * lanes + first, &block[i], sizeof(Vec));
    }
  }
  interleave_from(whole, rows, lanes, count, panel);
}

ATTN_OPT_VECTOR_CLONES void deinterleave(const float* panel, int lanes, int64_t count, float* const* rows) {
  const int64_t whole = count / kSide * kSide;
  for (int64_t j = 0; j < whole; j += kSide) {
    for (int first = 0; first < lanes; first += kSide) {
      Vec block[kSide];
      for (int i = 0; i < kSide; ++i) std::memcpy(&block[i], panel + (j + i) * lanes + first, sizeof(Vec));
      transpose(block);
      for (int i = 0; i < kSide; ++i) std::memcpy(rows[first + i] + j, &block[i], sizeof(Vec));
    }
  }
  deinterleave_from(whole, panel, lanes, count, rows);
}

void interleave(const double* const* rows, int lanes, int64_t count, double* panel) {
  interleave_from(0, rows, lanes, count, panel);
}

void deinterleave(const double* panel, int lanes, int64_t count, double* const* rows) {
  deinterleave_from(0, panel, lanes, count, rows);
}

}  // namespace attn_opt
