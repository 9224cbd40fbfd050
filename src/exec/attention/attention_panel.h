// The arithmetic of attention on one block: up to kMostLanes query rows side by side (the lanes of a panel) against a
// run of keys. Scores are laid out [key][lane], so that Q K^T, the softmax and P V are all vector operations down the
// lanes, and K and V are read row by row as they lie.
//
// The softmax is computed online: each call rescales what earlier calls added up to the largest score so far.
#pragma once

#include <cstdint>

#include "src/exec/attention/attention.h"
#include "src/exec/vector_clones.h"

namespace attn_opt {

/// Bytes of the lanes of a panel for ROWS query rows: one or two vectors.
template <class C>
int panel_bytes(int64_t rows) {
  const int64_t bytes = rows * static_cast<int64_t>(sizeof(C));
  return bytes <= 32 ? 32 : bytes <= 64 || !has_wide_vectors() ? 64 : 128;
}
/// Lanes of a panel for ROWS query rows.
template <class C>
int panel_lanes(int64_t rows) {
  return panel_bytes<C>(rows) / static_cast<int>(sizeof(C));
}
/// Features of V that are computed together in a panel whose lanes have BYTES: their sums fill the registers, of which there
/// are twice as many where vectors are wide.
constexpr int value_tile(int bytes, bool has_wide) { return bytes == 128 ? 12 : bytes == 64 && !has_wide ? 6 : 8; }

/// V[j][d] = data[(d / tile) * tile_stride + j * key_stride + d % tile].
template <class C>
struct ValueBlock {
  const C* data = nullptr;
  int64_t tile_stride = 0, key_stride = 0;
};

template <class C>
struct Panel {
  int lanes = 0;
  int64_t head_size = 0, v_head_size = 0;
  DataType type, softmax_type;  ///< that scores are rounded to
  C softcap = 0;
  ScoreStage wanted = ScoreStage::kNone;

  const C* q = nullptr;  ///< [head_size][lanes], scaled
  int64_t keys = 0;
  const C* k = nullptr;  ///< rows, k_stride apart
  int64_t k_stride = 0;
  ValueBlock<C> v{};
  bool is_first = false;    ///< of the panels that read these rows of K and V: they are not in a cache yet
  const C* bias = nullptr;  ///< [keys - unbiased][lanes], of the last keys; null: none
  int64_t unbiased = 0;
  const C* const* bias_rows = nullptr;  ///< rows of all keys, by lane, where `bias` is null; null: none
  C* scores = nullptr;                  ///< scratch, [keys][lanes]
  C* given = nullptr;                   ///< [keys][lanes]: the scores at stage `wanted`; of kProbabilities, those of kBiased

  // What calls add up to, by lane.
  C* most = nullptr;     ///< the largest score
  C* sum = nullptr;      ///< of exp(score - most)
  C* has_key = nullptr;  ///< 1 if a bias was not -inf
  C* out = nullptr;      ///< [v_head_size][lanes]: the sum of exp(score - most) * V
  bool goes_on = false;  ///< whether earlier calls left something in OUT
};

/// Adds PANEL's keys to what its rows have summed up.
template <class C>
void attend(const Panel<C>& panel);

/// The largest of |X|, infinity if one is infinite or NaN.
float largest_magnitude(const float* x, int64_t count);
double largest_magnitude(const double* x, int64_t count);

}  // namespace attn_opt
