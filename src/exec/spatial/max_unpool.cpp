// MaxUnpool: elements back to where MaxPool found them, zeros elsewhere.
#include "src/exec/dispatch.h"
#include "src/exec/families.h"
#include "src/exec/layout/strided.h"
#include "src/exec/spatial/window.h"

namespace attn_opt {
namespace {

/// The shape that a pool with the node's attributes makes X of, which the indices count in.
Expected<Dims> unpooled_dims(const KernelContext& context, const Dims& x) {
  const Dims kernel = context.attribute_ints("kernel_shape");
  if (kernel.empty() || kernel.size() + 2 != x.size()) {
    return context.invalid("the kernel is not of the spatial rank");
  }
  ATTN_OPT_TRY(const Window w, read_kernel(context, kernel));
  ATTN_OPT_TRY(const Dims pads, read_pads(context, kernel.size()));
  Dims dims = x;
  for (size_t axis = 0; axis < kernel.size(); ++axis) {
    int64_t& extent = dims[axis + 2];
    if (extent > kMostExtent) return context.invalid("input is out of range");
    extent = (extent - 1) * w.strides[axis] - pads[axis] - pads[kernel.size() + axis] + kernel[axis];
    if (extent < 0 || extent > kMostExtent) return context.invalid("the output's shape is out of range");
  }
  return dims;
}

/// OFFSET in a tensor of shape FROM as offset in one of shape TO; -1 where that lacks the place.
int64_t moved_offset(int64_t offset, const Dims& from, const Dims& from_strides, const Dims& to, const Dims& to_strides) {
  int64_t moved = 0;
  for (size_t axis = 0; axis < from.size(); ++axis) {
    const int64_t position = offset / from_strides[axis] % from[axis];
    if (position >= to[axis]) return -1;
    moved += position * to_strides[axis];
  }
  return moved;
}

Outputs max_unpool(const KernelContext& context) {
  const Tensor& x = context.input(0);
  const Tensor& indices = context.input(1);
  if (indices.type() != onnx::TensorProto::INT64 || indices.dims() != x.dims()) {
    return context.invalid("indices are not one for each element");
  }
  ATTN_OPT_TRY(const Dims from, unpooled_dims(context, x.dims()));
  const int64_t places = element_count(from);
  if (places < 0) return context.invalid("the output is too large");
  Dims to = from;
  if (context.has(2)) {
    ATTN_OPT_TRY(to, context.integers(context.input(2)));
    if (to.size() != from.size()) return context.invalid("output_shape is not of the input's rank");
  }
  ATTN_OPT_TRY(Tensor out, context.allocate(x.type(), to));
  const Dims from_strides = strides_of(from);
  const Dims to_strides = strides_of(to);
  const auto at = indices.data<int64_t>();
  return dispatch_cells(context, x.type(), [&]<class T>() -> Outputs {
    const T* values = cells<T>(x);
    T* results = mutable_cells<T>(out);
    for (size_t i = 0; i < at.size(); ++i) {
      int64_t offset = at[i] >= 0 && at[i] < places ? at[i] : -1;
      if (offset >= 0 && to != from) offset = moved_offset(offset, from, from_strides, to, to_strides);
      if (offset < 0) {
        return context.invalid("index " + std::to_string(at[i]) + " is out of range for " + print_dims(from) + " in " +
                               print_dims(to));
      }
      results[offset] = values[i];
    }
    return single(std::move(out));
  });
}

}  // namespace

void register_max_unpool(KernelRegistry& registry) { registry.add("MaxUnpool", 9, 22, max_unpool); }

}  // namespace attn_opt
