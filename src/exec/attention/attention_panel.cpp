#include "src/exec/attention/attention_panel.h"

#include <cstring>
#include <limits>

#include "src/exec/elementwise/round_to_type.h"
#include "src/exec/interleave.h"
#include "src/exec/register_sums.h"

namespace attn_opt {
namespace {

/// A panel of kVectors VECTORS in a row.
template <class Vectors, int kVectors, bool kHasWide>
struct Attend {
  using Vec = typename Vectors::Vec;
  using C = typename Vectors::Element;
  static constexpr int kLanes = kVectors * Vectors::kSize;
  static constexpr int kTile = value_tile(kLanes * static_cast<int>(sizeof(C)), kHasWide);
  static constexpr int kChains = 4;
  using Row = RegisterSums<Vectors, kVectors, 1>;

  const Panel<C> p;  // a copy: what is stored to scores may not change it
  Vec rescale[kVectors];

  ATTN_OPT_INLINE static Vec& at(C* row, int64_t v) { return Row::load(row, v); }
  ATTN_OPT_INLINE static const Vec& at(const C* row, int64_t v) { return Row::load(row, v); }

  /// Asks for rows from FIRST on. The processor itself foresees single runs through memory, not a tile's rows side by side.
  template <int kLocality>
  ATTN_OPT_INLINE void fetch(const C* rows, int64_t stride, int64_t first, int64_t count, int64_t width) {
    constexpr int64_t kLine = 64 / sizeof(C);
    const int64_t last = std::min(first + count, p.keys);
    for (int64_t j = first; j < last; ++j) {
      for (int64_t d = 0; d < width; d += kLine) __builtin_prefetch(rows + j * stride + d, 0, kLocality);
    }
  }

  template <int kRows>
  ATTN_OPT_INLINE void products(int64_t key) {
    if (p.is_first) {
      fetch<3>(p.k, p.k_stride, key + kRows, kRows, p.head_size);
      if (p.v.tile_stride == kTile) fetch<2>(p.v.data, p.v.key_stride, key, kRows, p.v_head_size);
    }
    RegisterSums<Vectors, kVectors, kRows> sums;
    sums.multiply(p.head_size, p.k + key * p.k_stride, p.k_stride, 1, p.q);
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) at(p.scores + (key + i) * kLanes, v) = sums.at[i][v];
    }
  }

  template <int kRows>
  ATTN_OPT_INLINE void products_from(int64_t& key) {
    for (; key + kRows <= p.keys; key += kRows) products<kRows>(key);
  }

  ATTN_OPT_INLINE void all_products() {
    int64_t key = 0;
    products_from<kTile>(key);
    products_from<4>(key);
    products_from<2>(key);
    products_from<1>(key);
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
    if (p.bias_rows != nullptr) {
      add_bias_rows();
    } else if (p.bias != nullptr) {
      add_bias();
    } else {
      for (int lane = 0; lane < kLanes; ++lane) p.has_key[lane] = 1;
    }
    give(ScoreStage::kBiased);
    if (p.softmax_type != p.type) round_to_type(p.scores, count, p.softmax_type);
  }

  /// Scores whose mask has their type need no rounding.
  ATTN_OPT_INLINE void add_bias_rows() {
    for (int lane = 0; lane < kLanes; ++lane) {
      for (int64_t j = 0; j < p.keys && p.has_key[lane] == 0; ++j) {
        p.has_key[lane] = p.bias_rows[lane][j] != -std::numeric_limits<C>::infinity() ? C{1} : C{0};
      }
    }
    add_interleaved(p.bias_rows, kLanes, p.keys, p.scores);
  }

  ATTN_OPT_INLINE void add_bias() {
    const C minus_infinity = -std::numeric_limits<C>::infinity();
    C* const scores = p.scores + p.unbiased * kLanes;
    Vec has_key[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) has_key[v] = p.unbiased > 0 ? Vec{} + 1 : at(p.has_key, v);
    for (int64_t j = 0; j < p.keys - p.unbiased; ++j) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        const Vec& bias = at(p.bias + j * kLanes, v);
        has_key[v] = bias != minus_infinity ? Vec{} + 1 : has_key[v];
        at(scores + j * kLanes, v) += bias;
      }
    }
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) at(p.has_key, v) = has_key[v];
    round_to_type(p.scores, p.keys * kLanes, p.type);
  }

  /// Calls use(i, chain) for each vector I of scores. Those of a chain have the same lanes; with several chains few sums or
  /// maxima wait for each other.
  template <class Use>
  ATTN_OPT_INLINE void each_score(const Use& use) {
    const int64_t count = p.keys * kVectors;
    int64_t i = 0;
    for (; i + kChains <= count; i += kChains) {
#pragma GCC unroll 4
      for (int c = 0; c < kChains; ++c) use(i + c, c);
    }
#pragma GCC unroll 4
    for (int c = 0; c < kChains; ++c) {
      if (i + c < count) use(i + c, c);
    }
  }

  /// Scores become exp(score - most); a lane without any finite score yet is shifted by 0.
  ATTN_OPT_INLINE void exponentials() {
    Vec most[kChains], shift[kVectors], sum[kChains] = {};
#pragma GCC unroll 4
    for (int c = 0; c < kChains; ++c) most[c] = at(p.most, c % kVectors);
    each_score([&](int64_t i, int c) __attribute__((always_inline)) {
      const Vec& score = at(p.scores, i);
      most[c] = score > most[c] ? score : most[c];
    });
#pragma GCC unroll 4
    for (int c = kVectors; c < kChains; ++c) most[c % kVectors] = most[c] > most[c % kVectors] ? most[c] : most[c % kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      shift[v] = most[v] == -std::numeric_limits<C>::infinity() ? Vec{} : most[v];
      rescale[v] = at(p.most, v) - shift[v];
      exponential(Vectors(), rescale[v]);
      at(p.most, v) = most[v];
    }
    each_score([&](int64_t i, int c) __attribute__((always_inline)) {
      Vec x = at(p.scores, i) - shift[c % kVectors];
      exponential(Vectors(), x);
      sum[c] += x;
      at(p.scores, i) = x;
    });
#pragma GCC unroll 4
    for (int c = kVectors; c < kChains; ++c) sum[c % kVectors] += sum[c];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) at(p.sum, v) = at(p.sum, v) * rescale[v] + sum[v];
  }

  template <int kFeatures>
  ATTN_OPT_INLINE void values(int64_t feature) {
    RegisterSums<Vectors, kVectors, kFeatures> sums;
    const C* v_tile = p.v.data + feature / kTile * p.v.tile_stride + feature % kTile;
    sums.multiply(p.keys, v_tile, 1, p.v.key_stride, p.scores);
#pragma GCC unroll 12
    for (int i = 0; i < kFeatures; ++i) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        Vec& out = at(p.out + (feature + i) * kLanes, v);
        out = p.goes_on ? out * rescale[v] + sums.at[i][v] : sums.at[i][v];
      }
    }
  }

  template <int kFeatures>
  ATTN_OPT_INLINE void values_from(int64_t& feature) {
    for (; feature + kFeatures <= p.v_head_size; feature += kFeatures) values<kFeatures>(feature);
  }

  ATTN_OPT_INLINE void all_values() {
    int64_t feature = 0;
    values_from<kTile>(feature);
    values_from<4>(feature);
    values_from<2>(feature);
    values_from<1>(feature);
  }

  ATTN_OPT_INLINE void run() {
    all_products();
    adjust();
    exponentials();
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

/// By vectors of BYTES, several at a time: one after the other each would wait for the one before.
template <int kBytes, class Bits, class C>
ATTN_OPT_INLINE C largest_of_bits(const C* x, int64_t count) {
  using Vectors = VectorOf<Bits, kBytes>;
  using Vec = typename Vectors::Vec;
  constexpr Bits kNotSign = static_cast<Bits>(~Bits{0}) >> 1;
  constexpr int kChains = 4;
  constexpr int64_t kStep = kChains * Vectors::kSize;
  Vec most[kChains] = {};
  int64_t i = 0;
  for (; i + kStep <= count; i += kStep) {
#pragma GCC unroll 4
    for (int c = 0; c < kChains; ++c) {
      Vec bits;
      std::memcpy(&bits, x + i + c * Vectors::kSize, sizeof(Vec));
      bits &= kNotSign;
      most[c] = bits > most[c] ? bits : most[c];
    }
  }
  Bits largest = 0;
  for (const Vec& chain : most)
    for (int lane = 0; lane < Vectors::kSize; ++lane) largest = std::max<Bits>(largest, chain[lane]);
  for (; i < count; ++i) largest = std::max<Bits>(largest, std::bit_cast<Bits>(x[i]) & kNotSign);
  const C magnitude = std::bit_cast<C>(largest);  // NaNs have the largest bits, then come infinities
  return std::isfinite(magnitude) ? magnitude : std::numeric_limits<C>::infinity();
}

#ifdef ATTN_OPT_WIDE_VECTORS
ATTN_OPT_WIDE_VECTORS void attend_wide(const Panel<float>& panel) { attend_wide_panel(panel); }
ATTN_OPT_WIDE_VECTORS void attend_wide(const Panel<double>& panel) { attend_wide_panel(panel); }
ATTN_OPT_WIDE_VECTORS float largest_wide(const float* x, int64_t count) { return largest_of_bits<64, uint32_t>(x, count); }
ATTN_OPT_WIDE_VECTORS double largest_wide(const double* x, int64_t count) { return largest_of_bits<64, uint64_t>(x, count); }
#endif
ATTN_OPT_VECTOR_CLONES void attend_narrow(const Panel<float>& panel) { attend_panel(panel); }
ATTN_OPT_VECTOR_CLONES void attend_narrow(const Panel<double>& panel) { attend_panel(panel); }
ATTN_OPT_VECTOR_CLONES float largest_narrow(const float* x, int64_t count) { return largest_of_bits<32, uint32_t>(x, count); }
ATTN_OPT_VECTOR_CLONES double largest_narrow(const double* x, int64_t count) { return largest_of_bits<32, uint64_t>(x, count); }

template <class C>
C largest(const C* x, int64_t count) {
#ifdef ATTN_OPT_WIDE_VECTORS
  if (has_wide_vectors()) return largest_wide(x, count);
#endif
  return largest_narrow(x, count);
}

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

float largest_magnitude(const float* x, int64_t count) { return largest(x, count); }
double largest_magnitude(const double* x, int64_t count) { return largest(x, count); }

}  // namespace attn_opt
