#include "src/exec/spatial/window.h"

namespace attn_opt {
namespace {

Expected<Dims> positive(const KernelContext& context, const char* name, size_t rank) {
  Dims values = context.attribute_ints(name);
  if (values.empty()) values.assign(rank, 1);
  if (values.size() != rank) {
    return context.invalid(std::string("attribute ") + name + " is not of the spatial rank");
  }
  for (const int64_t value : values) {
    if (value < 1 || value > kMostExtent) {
      return context.invalid(std::string("attribute ") + name + " is out of range");
    }
  }
  return values;
}

/// Output extent along AXIS, and pads for auto_pad; EFFECTIVE: extent of the dilated kernel.
int64_t output_extent(Window& w, size_t axis, int64_t effective, const std::string& auto_pad, bool ceil_mode) {
  const int64_t stride = w.strides[axis];
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
    const int64_t out = (w.in[axis] + stride - 1) / stride;
    const int64_t total = std::max<int64_t>(0, (out - 1) * stride + effective - w.in[axis]);
    w.pads_before[axis] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
    w.pads_after[axis] = total - w.pads_before[axis];
    return out;
  }
  const int64_t room = w.in[axis] + w.pads_before[axis] + w.pads_after[axis] - effective;
  if (room < 0) {
    // Rounded up, a window that does not fit is one where it starts within the input.
    return ceil_mode && room > -stride && w.in[axis] + w.pads_before[axis] > 0 ? 1 : 0;
  }
  int64_t out = room / stride + 1;
  if (ceil_mode && room % stride != 0 && out * stride < w.in[axis] + w.pads_before[axis]) ++out;
  return out;
}

bool sane(int64_t value, int64_t least) { return value >= least && value <= kMostExtent; }

}  // namespace

Expected<Window> read_kernel(const KernelContext& context, Dims kernel) {
  Window w;
  w.kernel = std::move(kernel);
  ATTN_OPT_TRY(w.strides, positive(context, "strides", w.kernel.size()));
  ATTN_OPT_TRY(w.dilations, positive(context, "dilations", w.kernel.size()));
  for (size_t axis = 0; axis < w.kernel.size(); ++axis) {
    if (!sane(w.kernel[axis], 1) || w.kernel[axis] > kMostExtent / w.dilations[axis]) {
      return context.invalid("kernel is out of range");
    }
  }
  return w;
}

Expected<Dims> read_pads(const KernelContext& context, size_t rank) {
  Dims pads = context.attribute_ints("pads");
  if (pads.empty()) pads.assign(2 * rank, 0);
  if (pads.size() != 2 * rank) return context.invalid("pads are not two for each spatial axis");
  const auto in_range = [](int64_t pad) { return sane(pad, -kMostExtent); };
  if (!std::ranges::all_of(pads, in_range)) return context.invalid("pads are out of range");
  return pads;
}

Expected<Window> read_window(const KernelContext& context, const Dims& x, Dims kernel) {
  if (x.size() < 3) return context.invalid("input of shape " + print_dims(x) + " has no spatial axes");
  if (kernel.size() != x.size() - 2) return context.invalid("the kernel is not of the spatial rank");
  ATTN_OPT_TRY(Window w, read_kernel(context, std::move(kernel)));
  w.in.assign(x.begin() + 2, x.end());
  const std::string auto_pad = context.attribute_string("auto_pad", "NOTSET");
  Dims pads(2 * w.rank(), 0);
  if (auto_pad == "NOTSET") {
    ATTN_OPT_TRY(pads, read_pads(context, w.rank()));
  }
  w.pads_before.assign(pads.begin(), pads.begin() + static_cast<int64_t>(w.rank()));
  w.pads_after.assign(pads.begin() + static_cast<int64_t>(w.rank()), pads.end());
  const bool ceil_mode = context.attribute_int("ceil_mode", 0) != 0;
  for (size_t axis = 0; axis < w.rank(); ++axis) {
    if (!sane(w.in[axis], 0)) return context.invalid("input is out of range");
    const int64_t effective = (w.kernel[axis] - 1) * w.dilations[axis] + 1;
    w.out.push_back(output_extent(w, axis, effective, auto_pad, ceil_mode));
  }
  return w;
}

Dims output_dims(const Dims& x, const Window& window) {
  Dims dims{x[0], x[1]};
  dims.insert(dims.end(), window.out.begin(), window.out.end());
  return dims;
}

Expected<Tensor> allocate_per_channel(const KernelContext& context) {
  const Tensor& x = context.input(0);
  if (x.rank() < 3) return context.invalid("input of shape " + print_dims(x.dims()) + " has no spatial axes");
  Dims dims(x.dims().size(), 1);
  std::copy_n(x.dims().begin(), 2, dims.begin());
  return context.allocate(x.type(), std::move(dims));
}

bool next_index(Dims& index, const Dims& dims) {
  for (size_t axis = dims.size(); axis-- > 0;) {
    if (++index[axis] < dims[axis]) return true;
    index[axis] = 0;
  }
  return false;
}

WindowWalk::WindowWalk(const Window& window, Dims strides)
    : window_(window), strides_(std::move(strides)), counts_(window.rank()), index_(window.rank() - 1) {
  for (size_t axis = 0; axis < window.rank(); ++axis) {
    steps_.push_back(window.dilations[axis] * strides_[axis]);
  }
}

double WindowWalk::enter(const Dims& out) {
  const Window& w = window_;
  double padded = 1;
  start_ = 0;
  for (size_t axis = 0; axis < w.rank(); ++axis) {
    const int64_t corner = window_position(w, axis, out[axis], 0);
    const Range shown = steps_inside(corner, w.dilations[axis], w.kernel[axis], w.in[axis]);
    counts_[axis] = shown.size();
    start_ += (corner + shown.first * w.dilations[axis]) * strides_[axis];
    const int64_t end = w.in[axis] + w.pads_after[axis];
    padded *= static_cast<double>(steps_inside(corner - end, w.dilations[axis], w.kernel[axis], 0).first);
  }
  leading_.assign(counts_.begin(), counts_.end() - 1);
  return padded;
}

}  // namespace attn_opt
