#include "src/exec/attention/attention_panel.h"

#include <cstring>
#include <limits>

#include "src/exec/elementwise/round_to_type.h"
#include "src/exec/vector_clones.h"
#include "src/exec/vector_math.h"

namespace attn_opt {
namespace {

/// ROWS x (kVectors * lanes of a vector) sums, in registers.
template <class Vectors, int kVectors, int kRows>
struct Sums {
  using Vec = typename Vectors::Vec;
  using C = typename Vectors::Element;
  static constexpr int kLanes = kVectors * Vectors::kSize;
  Vec at[kRows][kVectors];

  /// sums[i][lane] = over DEPTH: a[i * row_stride + l * depth_stride] * b[l][lane].
  ATTN_OPT_INLINE void multiply(int64_t depth, const C* a, int64_t row_stride, int64_t depth_stride, const C* b) {
    const C* rows[kRows];
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) {
      rows[i] = a + i * row_stride;
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) at[i][v] = Vec{};
    }
    for (int64_t l = 0; l < depth; ++l, b += kLanes) {
      Vec in[kVectors];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) in[v] = load(b, v);
#pragma GCC unroll 12
      for (int i = 0; i < kRows; ++i) {
        const C x = rows[i][l * depth_stride];
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) at[i][v] += x * in[v];
      }
    }
  }

  ATTN_OPT_INLINE static Vec& load(C* x, int v) { return reinterpret_cast<Vec*>(x)[v]; }
  ATTN_OPT_INLINE static const Vec& load(const C* x, int v) { return reinterpret_cast<const Vec*>(x)[v]; }
};

/// A panel of kVectors VECTORS in a row.
template <class Vectors, int kVectors, bool kHasWide>
struct Attend {
  using Vec = typename Vectors::Vec;
  using C = typename Vectors::Element;
  static constexpr int kLanes = kVectors * Vectors::kSize;
  static constexpr int kTile = value_tile(kLanes * static_cast<int>(sizeof(C)), kHasWide);
  using Row = Sums<Vectors, kVectors, 1>;

  const Panel<C>& p;
  Vec rescale[kVectors];

  ATTN_OPT_INLINE static Vec& at(C* row, int v) { return Row::load(row, v); }
  ATTN_OPT_INLINE static const Vec& at(const C* row, int v) { return Row::load(row, v); }

  template <int kRows>
  ATTN_OPT_INLINE void products(int64_t key) {
    Sums<Vectors, kVectors, kRows> sums;
    sums.multiply(p.head_size, p.k + key * p.k_stride, p.k_stride, 1, p.q);
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) at(p.scores + (key + i) * kLanes, v) = sums.at[i][v];
    }
  }

  ATTN_OPT_INLINE void all_products() {
    int64_t key = 0;
    for (; key + kTile <= p.keys; key += kTile) products<kTile>(key);
    for (; key < p.keys; ++key) products<1>(key);
  }

  ATTN_OPT_INLINE void give(ScoreStage stage) {
    const ScoreStage wanted = p.wanted == ScoreStage::kProbabilities ? ScoreStage::kBiased : p.wanted;
    if (stage == wanted) std::memcpy(p.given, p.scores, static_cast<size_t>(p.keys * kLanes) * sizeof(C));
  }

  /// Softcap, bias and rounding, in the order of the schema's body.
  ATTN_OPT_INLINE void adjust() {
    const int64_t count = p.keys * kLanes;
    round_to_type(p.scores, count, p.type);
    give(ScoreStage::kProduct);
    if (p.softcap != 0) {
      for (int64_t i = 0; i < count; i += Vectors::kSize) {
        Vec& score = at(p.scores + i, 0);
        score /= p.softcap;
        hyperbolic_tangent(Vectors(), score);
        score *= p.softcap;
      }
      round_to_type(p.scores, count, p.type);
    }
    give(ScoreStage::kSoftcapped);
    if (p.bias != nullptr) {
      add_bias();
    } else {
      for (int lane = 0; lane < kLanes; ++lane) p.has_key[lane] = 1;
    }
    give(ScoreStage::kBiased);
    if (p.softmax_type != p.type) round_to_type(p.scores, count, p.softmax_type);
  }

  ATTN_OPT_INLINE void add_bias() {
    const C minus_infinity = -std::numeric_limits<C>::infinity();
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      Vec has_key = at(p.has_key, v);
      for (int64_t j = 0; j < p.keys; ++j) {
        const Vec& bias = at(p.bias + j * kLanes, v);
        has_key = bias != minus_infinity ? Vec{} + 1 : has_key;
        at(p.scores + j * kLanes, v) += bias;
      }
      at(p.has_key, v) = has_key;
    }
    round_to_type(p.scores, p.keys * kLanes, p.type);
  }

  /// Scores become exp(score - most); a lane without any finite score yet is shifted by 0.
  ATTN_OPT_INLINE void exponentials(int v) {
    Vec most[4] = {at(p.most, v), at(p.most, v), at(p.most, v), at(p.most, v)};
    for (int64_t j = 0; j < p.keys; ++j) {
      const Vec& score = at(p.scores + j * kLanes, v);
      most[j % 4] = score > most[j % 4] ? score : most[j % 4];
    }
    for (int i = 1; i < 4; ++i) most[0] = most[i] > most[0] ? most[i] : most[0];
    const Vec shift = most[0] == -std::numeric_limits<C>::infinity() ? Vec{} : most[0];
    Vec scale = at(p.most, v) - shift;
    exponential(Vectors(), scale);
    at(p.most, v) = most[0];
    Vec sum[4] = {};
    for (int64_t j = 0; j < p.keys; ++j) {
      Vec& score = at(p.scores + j * kLanes, v);
      Vec x = score - shift;
      exponential(Vectors(), x);
      sum[j % 4] += x;
      score = x;
    }
    at(p.sum, v) = at(p.sum, v) * scale + ((sum[0] + sum[1]) + (sum[2] + sum[3]));
    rescale[v] = scale;
  }

  template <int kFeatures>
  ATTN_OPT_INLINE void values(int64_t feature) {
    Sums<Vectors, kVectors, kFeatures> sums;
    const C* v_tile = p.v.data + feature / kTile * p.v.tile_stride + feature % kTile;
    sums.multiply(p.keys, v_tile, 1, p.v.key_stride, p.scores);
#pragma GCC unroll 12
    for (int i = 0; i < kFeatures; ++i) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        Vec& out = at(p.out + (feature + i) * kLanes, v);
        out = out * rescale[v] + sums.at[i][v];
      }
    }
  }

  ATTN_OPT_INLINE void all_values() {
    int64_t feature = 0;
    for (; feature + kTile <= p.v_head_size; feature += kTile) values<kTile>(feature);
    for (; feature + 2 <= p.v_head_size; feature += 2) values<2>(feature);
    for (; feature < p.v_head_size; ++feature) values<1>(feature);
  }

  ATTN_OPT_INLINE void run() {
    all_products();
    adjust();
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) exponentials(v);
    all_values();
  }
};

template <class C>
ATTN_OPT_INLINE void attend_panel(const Panel<C>& panel) {
  using Vectors = VectorOf<C>;
  if (panel.lanes == Vectors::kSize) {
    Attend<Vectors, 1, false>{panel, {}}.run();
  } else {
    Attend<Vectors, 2, false>{panel, {}}.run();
  }
}

#ifdef ATTN_OPT_WIDE_VECTORS
template <class C>
ATTN_OPT_INLINE void attend_wide_panel(const Panel<C>& panel) {
  using Vectors = VectorOf<C, 64>;
  if (panel.lanes == Vectors::kSize / 2) {
    Attend<VectorOf<C>, 1, true>{panel, {}}.run();
  } else if (panel.lanes == Vectors::kSize) {
    Attend<Vectors, 1, true>{panel, {}}.run();
  } else {
    Attend<Vectors, 2, true>{panel, {}}.run();
  }
}
#endif

template <class C, class Bits>
ATTN_OPT_INLINE C largest_of_bits(const C* x, int64_t count) {
  constexpr Bits kNotSign = static_cast<Bits>(~Bits{0}) >> 1;
  Bits most = 0;
  for (int64_t i = 0; i < count; ++i) most = std::max<Bits>(most, std::bit_cast<Bits>(x[i]) & kNotSign);
  const C largest = std::bit_cast<C>(most);  // NaNs have the largest bits, then come infinities
  return std::isfinite(largest) ? largest : std::numeric_limits<C>::infinity();
}

#ifdef ATTN_OPT_WIDE_VECTORS
ATTN_OPT_WIDE_VECTORS void attend_wide(const Panel<float>& panel) { attend_wide_panel(panel); }
ATTN_OPT_WIDE_VECTORS void attend_wide(const Panel<double>& panel) { attend_wide_panel(panel); }
#endif
ATTN_OPT_VECTOR_CLONES void attend_narrow(const Panel<float>& panel) { attend_panel(panel); }
ATTN_OPT_VECTOR_CLONES void attend_narrow(const Panel<double>& panel) { attend_panel(panel); }

}  // namespace

template <class C>
void attend(const Panel<C>& panel) {
#ifdef ATTN_OPT_WIDE_VECTORS
  if (has_wide_vectors()) return attend_wide(panel);
#endif
  attend_narrow(panel);
}

template void attend(const Panel<float>& panel);
template void attend(const Panel<double>& panel);

ATTN_OPT_VECTOR_CLONES float largest_magnitude(const float* x, int64_t count) {
  return largest_of_bits<float, uint32_t>(x, count);
}
ATTN_OPT_VECTOR_CLONES double largest_magnitude(const double* x, int64_t count) {
  return largest_of_bits<double, uint64_t>(x, count);
}

}  // namespace attn_opt
