// The sliding window of convolutions and pools.
#pragma once

#include <algorithm>

#include "src/exec/kernel.h"

namespace attn_opt {

/// One entry for each spatial axis of an input of shape (N, C, spatial...).
struct Window {
  Dims in, kernel, strides, dilations, pads_before, pads_after, out;

  size_t rank() const { return in.size(); }
};

/// Extents, pads and kernels beyond it are refused: far from where their sums and products overflow.
inline constexpr int64_t kMostExtent = int64_t{1} << 30;

/// Reads strides, dilations, pads, auto_pad and ceil_mode of a node whose input 0 has the shape X.
Expected<Window> read_window(const KernelContext& context, const Dims& x, Dims kernel);

/// A window that steps over an image as ConvTranspose's output: all but in, pads and out, which stay empty.
Expected<Window> read_kernel(const KernelContext& context, Dims kernel);

/// Attribute pads: all that come before an axis, then all that come behind; 0 without it.
Expected<Dims> read_pads(const KernelContext& context, size_t rank);

/// The shape of what windows make of an input of shape X, channel by channel.
Dims output_dims(const Dims& x, const Window& window);

/// A zero for each channel of input 0, of (N, C, spatial...), in the shape (N, C, 1, ...).
Expected<Tensor> allocate_per_channel(const KernelContext& context);

/// Where in the input the window at OUT shows at KERNEL along AXIS; outside of [0, in) it is padding.
inline int64_t window_position(const Window& window, size_t axis, int64_t out, int64_t kernel) {
  return out * window.strides[axis] - window.pads_before[axis] + kernel * window.dilations[axis];
}

/// Advances INDEX by one in row-major order within DIMS; false after the last.
bool next_index(Dims& index, const Dims& dims);

struct Range {
  int64_t first = 0, end = 0;

  int64_t size() const { return end - first; }
};

/// The i in [0, COUNT) for which START + i * STEP lies in [0, EXTENT); STEP is positive.
inline Range steps_inside(int64_t start, int64_t step, int64_t count, int64_t extent) {
  const auto steps_to = [&](int64_t position) { return position <= start ? 0 : (position - start - 1) / step + 1; };
  const int64_t first = std::min(steps_to(0), count);
  return {first, std::clamp(steps_to(extent), first, count)};
}

/// Walks over what windows show of a channel; time passes for elements of the input only, never for pads.
class WindowWalk {
 public:
  /// STRIDES: of a channel.
  WindowWalk(const Window& window, Dims strides);

  /// Calls visit(offset) for each element of a channel under the window at OUT; returns how many positions of
  /// the window lie within the input and its pads.
  template <class Visit>
  double visit(const Dims& out, Visit&& visit) {
    const double padded = enter(out);
    if (element_count(counts_) == 0) return padded;
    const size_t last = counts_.size() - 1;
    do {
      int64_t offset = start_;
      for (size_t axis = 0; axis < last; ++axis) offset += index_[axis] * steps_[axis];
      for (int64_t i = 0; i < counts_[last]; ++i) visit(offset + i * steps_[last]);
    } while (next_index(index_, leading_));
    return padded;
  }

 private:
  double enter(const Dims& out);

  const Window& window_;
  Dims strides_, steps_;   ///< of a channel: by element, by kernel position
  Dims counts_, leading_;  ///< kernel positions that show input, without the last axis
  Dims index_;
  int64_t start_ = 0;
};

}  // namespace attn_opt
