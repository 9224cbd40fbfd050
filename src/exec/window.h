// The sliding window of convolutions and pools.
#pragma once

#include "src/exec/kernel.h"

namespace attn_opt {

/// One entry for each spatial axis of an input of shape (N, C, spatial...).
struct Window {
  Dims in, kernel, strides, dilations, pads_before, pads_after, out;

  size_t rank() const { return in.size(); }
};

/// Reads strides, dilations, pads, auto_pad and ceil_mode of a node whose input 0 has the shape X.
Expected<Window> read_window(const KernelContext& context, const Dims& x, Dims kernel);

/// Where in the input the window at OUT shows at KERNEL along AXIS; outside of [0, in) it is padding.
inline int64_t window_position(const Window& window, size_t axis, int64_t out, int64_t kernel) {
  return out * window.strides[axis] - window.pads_before[axis] + kernel * window.dilations[axis];
}

/// Advances INDEX by one in row-major order within DIMS; false after the last.
bool next_index(Dims& index, const Dims& dims);

}  // namespace attn_opt
