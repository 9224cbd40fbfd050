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
/// As many doubles as a vector has floats.
using Doubles = VectorOf<double, 8 * Floats::kSize>::Vec;

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

template <class Numbers>
ATTN_OPT_INLINE double sum_of_lanes(const Numbers& numbers) {
  double sum = 0;
  for (int lane = 0; lane < Floats::kSize; ++lane) sum += double{numbers[lane]};
  return sum;
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
  Doubles sum = {};
  each_vector(count, [&](int64_t at, int64_t rest) ATTN_OPT_INLINED {
    Vec x;
    load(x, from + at, rest, kMinusInfinity);
    x -= largest;
    exponential(Floats(), x);
    store(x, to + at, rest);
    sum += __builtin_convertvector(x, Doubles);
  });
  const double whole = sum_of_lanes(sum);
  map(to, count, to,
      [whole](Vec& x) ATTN_OPT_INLINED { x = __builtin_convertvector(__builtin_convertvector(x, Doubles) / whole, Vec); });
}

ATTN_OPT_VECTOR_CLONES double sum_of(const float* values, int64_t count) {
  Doubles sum = {};
  each_vector(count, [&](int64_t at, int64_t rest) ATTN_OPT_INLINED {
    Vec x;
    load(x, values + at, rest);
    sum += __builtin_convertvector(x, Doubles);
  });
  return sum_of_lanes(sum);
}

ATTN_OPT_VECTOR_CLONES double sum_of_squares(const float* values, int64_t count, double mean) {
  const int64_t whole = count / Floats::kSize * Floats::kSize;
  Doubles sum = {};
  each_vector(whole, [&](int64_t at, int64_t rest) ATTN_OPT_INLINED {
    Vec x;
    load(x, values + at, rest);
    const Doubles centred = __builtin_convertvector(x, Doubles) - mean;
    sum += centred * centred;
  });
  double squares = sum_of_lanes(sum);
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
