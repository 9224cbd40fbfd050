#include "src/exec/window.h"

namespace attn_opt {
namespace {

/// Far from where sums and products of extents overflow.
constexpr int64_t kMostExtent = int64_t{1} << 30;

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
int64_t output_extent(Window& w, size_t axis, int64_t effective, const std::string& auto_pad,
                      bool ceil_mode) {
  const int64_t stride = w.strides[axis];
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
    const int64_t out = (w.in[axis] + stride - 1) / stride;
    const int64_t total = std::max<int64_t>(0, (out - 1) * stride + effective - w.in[axis]);
    w.pads_before[axis] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
    w.pads_after[axis] = total - w.pads_before[axis];
    return out;
  }
  const int64_t room = w.in[axis] + w.pads_before[axis] + w.pads_after[axis] - effective;
  if (room < 0) return 0;
  int64_t out = room / stride + 1;
  if (ceil_mode && room % stride != 0 && out * stride < w.in[axis] + w.pads_before[axis]) ++out;
  return out;
}

}  // namespace

Expected<Window> read_window(const KernelContext& context, const Dims& x, Dims kernel) {
  if (x.size() < 3) return context.invalid("input of shape " + print_dims(x) + " has no spatial axes");
  Window w;
  w.in.assign(x.begin() + 2, x.end());
  w.kernel = std::move(kernel);
  if (w.kernel.size() != w.rank()) return context.invalid("the kernel is not of the spatial rank");
  ATTN_OPT_TRY(w.strides, positive(context, "strides", w.rank()));
  ATTN_OPT_TRY(w.dilations, positive(context, "dilations", w.rank()));
  const std::string auto_pad = context.attribute_string("auto_pad", "NOTSET");
  Dims pads = context.attribute_ints("pads");
  if (pads.empty() || auto_pad != "NOTSET") pads.assign(2 * w.rank(), 0);
  if (pads.size() != 2 * w.rank()) return context.invalid("pads are not two for each spatial axis");
  w.pads_before.assign(pads.begin(), pads.begin() + static_cast<int64_t>(w.rank()));
  w.pads_after.assign(pads.begin() + static_cast<int64_t>(w.rank()), pads.end());
  const bool ceil_mode = context.attribute_int("ceil_mode", 0) != 0;
  for (size_t axis = 0; axis < w.rank(); ++axis) {
    const auto sane = [](int64_t value, int64_t least) { return value >= least && value <= kMostExtent; };
    const bool in_range = sane(w.kernel[axis], 1) && sane(w.in[axis], 0) &&
                          sane(w.pads_before[axis], -kMostExtent) && sane(w.pads_after[axis], -kMostExtent);
    if (!in_range || w.kernel[axis] > kMostExtent / w.dilations[axis]) {
      return context.invalid("kernel, pads or input are out of range");
    }
    const int64_t effective = (w.kernel[axis] - 1) * w.dilations[axis] + 1;
    w.out.push_back(output_extent(w, axis, effective, auto_pad, ceil_mode));
  }
  return w;
}

bool next_index(Dims& index, const Dims& dims) {
  for (size_t axis = dims.size(); axis-- > 0;) {
    if (++index[axis] < dims[axis]) return true;
    index[axis] = 0;
  }
  return false;
}

}  // namespace attn_opt
