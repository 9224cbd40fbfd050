// Operators that change or tell a shape and move no elements.
#include <numeric>

#include "src/exec/dispatch.h"
#include "src/exec/elementwise/broadcast.h"
#include "src/exec/families.h"

namespace attn_opt {
namespace {

Outputs identity(const KernelContext& context) { return std::vector<Tensor>{context.input(0)}; }

Outputs shape(const KernelContext& context) {
  const Dims& dims = context.input(0).dims();
  const int64_t rank = context.input(0).rank();
  const auto bound = [&](const char* name, int64_t otherwise) {
    const int64_t value = context.attribute_int(name, otherwise);
    return std::clamp(value < 0 ? value + rank : value, int64_t{0}, rank);
  };
  const int64_t start = bound("start", 0);
  const int64_t end = std::max(start, bound("end", rank));
  return std::vector<Tensor>{Tensor::of<int64_t>({end - start}, Dims(dims.begin() + start, dims.begin() + end))};
}

Outputs size(const KernelContext& context) { return std::vector<Tensor>{Tensor::scalar<int64_t>(context.input(0).size())}; }

Expected<Tensor> with_dims(const KernelContext& context, Dims dims) {
  if (element_count(dims) != context.input(0).size()) {
    return context.invalid("shape " + print_dims(context.input(0).dims()) + " cannot become " + print_dims(dims));
  }
  return context.input(0).reshaped(std::move(dims));
}

Outputs reshape(const KernelContext& context) {
  const Tensor& x = context.input(0);
  ATTN_OPT_TRY(Dims dims, context.integers_or_attribute(1, "shape"));
  const bool zero_is_zero = context.attribute_int("allowzero", 0) != 0;
  int64_t inferred = -1;
  int64_t known = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0 && !zero_is_zero) {
      if (i >= x.dims().size()) {
        return context.invalid("0 in the shape stands for an axis that the input lacks");
      }
      dims[i] = x.dims()[i];
    }
    if (dims[i] == -1) {
      if (inferred >= 0) return context.invalid("more than one -1 in shape " + print_dims(dims));
      inferred = static_cast<int64_t>(i);
    } else if (__builtin_mul_overflow(known, dims[i], &known)) {
      return context.invalid("shape " + print_dims(dims) + " is too large");
    }
  }
  if (inferred >= 0) {
    if (known <= 0 || x.size() % known != 0) {
      return context.invalid("shape " + print_dims(x.dims()) + " cannot become " + print_dims(dims));
    }
    dims[static_cast<size_t>(inferred)] = x.size() / known;
  }
  return single(with_dims(context, std::move(dims)));
}

Outputs squeeze(const KernelContext& context) {
  const Tensor& x = context.input(0);
  const bool all = context.version < 13 ? context.attribute("axes") == nullptr : !context.has(1);
  ATTN_OPT_TRY(const auto axes, context.integers_or_attribute(1, "axes"));
  std::vector<bool> drop(x.dims().size(), false);
  for (size_t i = 0; all && i < drop.size(); ++i) drop[i] = x.dims()[i] == 1;
  for (const int64_t given : axes) {
    ATTN_OPT_TRY(const int64_t axis, context.axis(given, x.rank()));
    drop[static_cast<size_t>(axis)] = true;
  }
  Dims dims;
  for (size_t i = 0; i < drop.size(); ++i) {
    if (!drop[i]) dims.push_back(x.dims()[i]);
  }
  return single(with_dims(context, std::move(dims)));
}

Outputs unsqueeze(const KernelContext& context) {
  const Tensor& x = context.input(0);
  ATTN_OPT_TRY(const auto axes, context.integers_or_attribute(1, "axes"));
  const int64_t rank = x.rank() + static_cast<int64_t>(axes.size());
  std::vector<bool> added(static_cast<size_t>(rank), false);
  for (const int64_t given : axes) {
    ATTN_OPT_TRY(const int64_t axis, context.axis(given, rank));
    if (added[static_cast<size_t>(axis)]) {
      return context.invalid("axis " + std::to_string(axis) + " is given twice");
    }
    added[static_cast<size_t>(axis)] = true;
  }
  Dims dims;
  size_t next = 0;
  for (const bool one : added) dims.push_back(one ? 1 : x.dims()[next++]);
  return single(with_dims(context, std::move(dims)));
}

Outputs flatten(const KernelContext& context) {
  const Tensor& x = context.input(0);
  int64_t axis = context.attribute_int("axis", 1);
  if (axis < -x.rank() || axis > x.rank()) {
    return context.invalid("axis " + std::to_string(axis) + " is out of range");
  }
  if (axis < 0) axis += x.rank();
  const std::span<const int64_t> dims(x.dims());
  const int64_t rows = element_count(dims.first(static_cast<size_t>(axis)));
  return single(with_dims(context, {rows, element_count(dims.subspan(static_cast<size_t>(axis)))}));
}

Outputs expand_to_shape(const KernelContext& context) {
  ATTN_OPT_TRY(const Dims shape, context.integers(context.input(1)));
  ATTN_OPT_TRY(const Dims dims, broadcast_dims(context, context.input(0).dims(), shape));
  return single(expand(context, context.input(0), dims));
}

Outputs tile(const KernelContext& context) {
  const Tensor& x = context.input(0);
  if (context.version < 6) return context.unsupported("tiles as a scalar");
  ATTN_OPT_TRY(const Dims repeats, context.integers(context.input(1)));
  if (repeats.size() != x.dims().size()) return context.invalid("repeats are not one for each axis");
  const Dims own = strides_of(x.dims());
  Dims dims, walked, strides;
  for (size_t i = 0; i < repeats.size(); ++i) {
    int64_t total = 0;
    if (repeats[i] < 0 || __builtin_mul_overflow(repeats[i], x.dims()[i], &total)) {
      return context.invalid("repeats " + print_dims(repeats) + " are negative or too large");
    }
    dims.push_back(total);
    walked.insert(walked.end(), {repeats[i], x.dims()[i]});
    strides.insert(strides.end(), {0, own[i]});
  }
  ATTN_OPT_TRY(Tensor out, context.allocate(x.type(), dims));
  return single(dispatch_cells(context, x.type(), [&]<class T>() -> Expected<Tensor> {
    const T* from = cells<T>(x);
    T* to = mutable_cells<T>(out);
    if (out.size() != 0) {
      StridedLoop<1>(walked, {strides}).elements([&](const std::array<int64_t, 1>& at) { *to++ = from[at[0]]; });
    }
    return std::move(out);
  }));
}

/// Inference only: the data itself, and a mask that keeps everything.
}  // namespace

void register_shape_ops(KernelRegistry& registry) {
  registry.add("Identity", 1, 25, identity);
  for (const char* copy : {"MemcpyFromHost", "MemcpyToHost"}) registry.add(copy, 1, 1, identity);
  registry.add("Shape", 1, 25, shape);
  registry.add("Size", 1, 25, size);
  registry.add("Reshape", 1, 25, reshape);
  registry.add("Squeeze", 1, 25, squeeze);
  registry.add("Unsqueeze", 1, 25, unsqueeze);
  registry.add("Flatten", 1, 25, flatten);
  registry.add("Expand", 8, 13, expand_to_shape);
  registry.add("Tile", 1, 13, tile);
}

}  // namespace attn_opt
