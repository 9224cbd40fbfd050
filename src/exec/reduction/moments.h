// Mean and deviation of values that lie side by side.
#pragma once

#include <cmath>
#include <cstdint>

#include "src/exec/dispatch.h"
#include "src/exec/elementwise/vector_functions.h"

namespace attn_opt {

template <class T>
double mean_of(const T* values, int64_t count) {
  double sum = 0;
  if constexpr (std::is_same_v<T, float>) {
    sum = sum_of(values, count);
  } else {
    for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(static_cast<Compute<T>>(values[i]));
  }
  return sum / static_cast<double>(count);
}

/// 1 / sqrt(variance + EPSILON) of COUNT values about MEAN.
template <class T>
double inverse_deviation(const T* values, int64_t count, double mean, double epsilon) {
  double squares = 0;
  if constexpr (std::is_same_v<T, float>) {
    squares = sum_of_squares(values, count, mean);
  } else {
    for (int64_t i = 0; i < count; ++i) {
      const double centred = static_cast<double>(static_cast<Compute<T>>(values[i])) - mean;
      squares += centred * centred;
    }
  }
  return 1 / std::sqrt(squares / static_cast<double>(count) + epsilon);
}

}  // namespace attn_opt
