#include "src/exec/elementwise/vector_functions.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "src/exec/vector_clones.h"
#include "src/exec/vector_math.h"

#define ATTN_OPT_INLINED __attribute__((always_inline))  // of lambdas

namespace attn_opt {
namespace {

using Floats = VectorOf<float>;
using Vec = Floats::Vec;
using HalfVec = VectorOf<double>::Vec;

/// As many doubles as a vector has floats: in two, since one of 64 bytes would go through memory.
struct Doubles {
  HalfVec low = {}, high = {};

  ATTN_OPT_INLINE void set(const Vec& x) {
    low = __builtin_convertvector(__builtin_shufflevector(x, x, 0, 1, 2, 3), HalfVec);
    high = __builtin_convertvector(__builtin_shufflevector(x, x, 4, 5, 6, 7), HalfVec);
  }
  ATTN_OPT_INLINE void get(Vec& x) const {
    using Quarter = VectorOf<float, 16>::Vec;
    x = __builtin_shufflevector(__builtin_convertvector(low, Quarter), __builtin_convertvector(high, Quarter), 0, 1, 2, 3, 4, 5,
                                6, 7);
  }
  ATTN_OPT_INLINE void add(const Doubles& more) {
    low += more.low;
    high += more.high;
  }
  double sum() const { return low[0] + low[1] + low[2] + low[3] + high[0] + high[1] + high[2] + high[3]; }
};

/// COUNT numbers from FROM on; REST stands for those that a vector has beyond.
ATTN_OPT_INLINE void load(Vec& vector, const float* from, int64_t count, float rest = 0) {
  if (count < Floats::kSize) vector = Vec{} + rest;
  std::memcpy(&vector, from, static_cast<size_t>(std::min<int64_t>(count, Floats::kSize)) * sizeof(float));
}

ATTN_OPT_INLINE void store(const Vec& vector, float* to, int64_t count) {
  std::memcpy(to, &vector, static_cast<size_t>(std::min<int64_t>(count, Floats::kSize)) * sizeof(float));
}

/// Calls step(vector, at, count) for all vectors of COUNT numbers: the last may have fewer.
template <class Step>
ATTN_OPT_INLINE void each_vector(int64_t count, Step step) {
  int64_t at = 0;
  for (; at + Floats::kSize <= count; at += Floats::kSize) step(at, int64_t{Floats::kSize});
  if (at < count) step(at, count - at);
}

template <class F>
ATTN_OPT_INLINE void map(const float* from, int64_t count, float* to, F function) {
  each_vector(count, [&](int64_t at, int64_t rest) ATTN_OPT_INLINED {
    Vec x;
    load(x, from + at, rest);
    function(x);
    store(x, to + at, rest);
  });
}

}  // namespace

ATTN_OPT_VECTOR_CLONES void error_functions(const float* from, int64_t count, float* to) {
  map(from, count, to, [](Vec& x) ATTN_OPT_INLINED { error_function(Floats(), x); });
}

ATTN_OPT_VECTOR_CLONES void hyperbolic_tangents(const float* from, int64_t count, float* to) {
  map(from, count, to, [](Vec& x) ATTN_OPT_INLINED { hyperbolic_tangent(Floats(), x); });
}

ATTN_OPT_VECTOR_CLONES void softmax(const float* from, int64_t count, float* to) {
  constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
  Vec most = Vec{} + kMinusInfinity;
  each_vector(count, [&](int64_t at, int64_t rest) ATTN_OPT_INLINED {
    Vec x;
    load(x, from + at, rest, kMinusInfinity);
    most = x > most ? x : most;
  });
  float largest = kMinusInfinity;
  for (int lane = 0; lane < Floats::kSize; ++lane) largest = std::max(largest, most[lane]);
  Doubles sum, wide;
  each_vector(count, [&](int64_t at, int64_t rest) ATTN_OPT_INLINED {
    Vec x;
    load(x, from + at, rest, kMinusInfinity);
    x -= largest;
    exponential(Floats(), x);
    store(x, to + at, rest);
    wide.set(x);
    sum.add(wide);
  });
  const double factor = 1 / sum.sum();
  map(to, count, to, [factor](Vec& x) ATTN_OPT_INLINED {
    Doubles share;
    share.set(x);
    share.low *= factor;
    share.high *= factor;
    share.get(x);
  });
}

ATTN_OPT_VECTOR_CLONES double sum_of(const float* values, int64_t count) {
  Doubles sum, wide;
  each_vector(count, [&](int64_t at, int64_t rest) ATTN_OPT_INLINED {
    Vec x;
    load(x, values + at, rest);
    wide.set(x);
    sum.add(wide);
  });
  return sum.sum();
}

ATTN_OPT_VECTOR_CLONES double sum_of_squares(const float* values, int64_t count, double mean) {
  const int64_t whole = count / Floats::kSize * Floats::kSize;
  Doubles sum, wide;
  each_vector(whole, [&](int64_t at, int64_t rest) ATTN_OPT_INLINED {
    Vec x;
    load(x, values + at, rest);
    wide.set(x);
    wide.low -= mean;
    wide.high -= mean;
    sum.low += wide.low * wide.low;
    sum.high += wide.high * wide.high;
  });
  double squares = sum.sum();
  for (int64_t i = whole; i < count; ++i) squares += (double{values[i]} - mean) * (double{values[i]} - mean);
  return squares;
}

ATTN_OPT_VECTOR_CLONES void normalize_row(const float* from, int64_t count, double mean, double factor, const double* scale,
                                          const double* bias, float* to) {
  for (int64_t i = 0; i < count; ++i) {
    const double normal = (double{from[i]} - mean) * factor;
    to[i] = static_cast<float>(normal * scale[i] + (bias ? bias[i] : 0));
  }
}

}  // namespace attn_opt
