// Values between the elements of a tensor: each is a sum of few elements times weights.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "attn_opt/tensor.h"

namespace attn_opt {

/// An element and its weight.
struct Tap {
  int64_t offset = 0;
  double weight = 0;
};

/// The elements along one axis that a position lies between.
class AxisTaps {
 public:
  /// Adds to the weight of INDEX.
  void add(int64_t index, double weight);
  std::span<const Tap> all() const { return {taps_.data(), count_}; }

 private:
  std::array<Tap, 4> taps_{};  // as many as cubic interpolation has
  size_t count_ = 0;
};

/// Of linear interpolation; what lies outside of [0, EXTENT) counts as 0 and is left out.
AxisTaps linear_taps(double position, int64_t extent);

/// Keys' cubic convolution kernel with coefficient A.
double cubic_weight(double distance, double a);

/// Makes TAPS those of the point that AXES are the coordinates of, in a tensor of STRIDES.
void combine(std::span<const AxisTaps> axes, const Dims& strides, std::vector<Tap>& taps);

template <class T>
double weighted_sum(const T* elements, std::span<const Tap> taps) {
  double sum = 0;
  for (const Tap& tap : taps) sum += tap.weight * static_cast<double>(elements[tap.offset]);
  return sum;
}

}  // namespace attn_opt
