#include "src/exec/spatial/sampling.h"

#include <cmath>

namespace attn_opt {

void AxisTaps::add(int64_t index, double weight) {
  for (size_t i = 0; i < count_; ++i) {
    if (taps_[i].offset != index) continue;
    taps_[i].weight += weight;
    return;
  }
  taps_[count_++] = {index, weight};
}

AxisTaps linear_taps(double position, int64_t extent) {
  AxisTaps taps;
  if (!(position > -1 && position < static_cast<double>(extent))) return taps;
  const double below = std::floor(position);
  const auto index = static_cast<int64_t>(below);
  if (index >= 0) taps.add(index, 1 - (position - below));
  if (index + 1 < extent) taps.add(index + 1, position - below);
  return taps;
}

double cubic_weight(double distance, double a) {
  const double x = std::abs(distance);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

void combine(std::span<const AxisTaps> axes, const Dims& strides, std::vector<Tap>& taps) {
  taps.assign(1, {0, 1});
  std::vector<Tap> wider;
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    wider.clear();
    for (const Tap& tap : taps) {
      for (const Tap& along : axes[axis].all()) {
        wider.push_back({tap.offset + along.offset * strides[axis], tap.weight * along.weight});
      }
    }
    taps.swap(wider);
  }
}

}  // namespace attn_opt
