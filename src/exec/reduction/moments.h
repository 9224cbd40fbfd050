// Mean and deviation of values that lie side by side.
#pragma once

#include <cmath>
#include <cstdint>

#include "src/exec/dispatch.h"

namespace attn_opt {

template <class T>
double mean_of(const T* values, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(static_cast<Compute<T>>(values[i]));
  return sum / static_cast<double>(count);
}

/// 1 / sqrt(variance + EPSILON) of COUNT values about MEAN.
template <class T>
double inverse_deviation(const T* values, int64_t count, double mean, double epsilon) {
  double squares = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double centred = static_cast<double>(static_cast<Compute<T>>(values[i])) - mean;
    squares += centred * centred;
  }
  return 1 / std::sqrt(squares / static_cast<double>(count) + epsilon);
}

}  // namespace attn_opt
