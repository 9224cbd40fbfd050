#include "src/exec/layout/copy.h"

#include <utility>

namespace attn_opt {
namespace {

/// A tensor of shape DIMS whose element at an index is TENSOR's at OFFSET + index * STRIDES.
Expected<Tensor> gather_strided(const KernelContext& context, const Tensor& tensor, Dims dims, int64_t offset,
                                const Dims& strides) {
  ATTN_OPT_TRY(Tensor out, context.allocate_unset(tensor.type(), std::move(dims)));
  if (out.size() == 0) return out;
  const StridedLoop<1> loop(out.dims(), {strides});
  return dispatch_cells(context, tensor.type(), [&]<class T>() -> Expected<Tensor> {
    const T* from = cells<T>(tensor) + offset;
    T* to = mutable_cells<T>(out);
    loop.rows([&](const std::array<int64_t, 1>& at, int64_t count, const std::array<int64_t, 1>& step) {
      if (step[0] == 1) {
        to = std::copy_n(from + at[0], count, to);
      } else {
        for (int64_t i = 0; i < count; ++i) *to++ = from[at[0] + i * step[0]];
      }
    });
    return std::move(out);
  });
}

}  // namespace

Expected<Tensor> transposed(const KernelContext& context, const Tensor& tensor, const std::vector<int64_t>& perm) {
  const Dims own = strides_of(tensor.dims());
  std::vector<bool> seen(own.size(), false);
  Dims dims, strides;
  for (const int64_t given : perm) {
    ATTN_OPT_TRY(const int64_t axis, context.axis(given, tensor.rank()));
    const size_t at = static_cast<size_t>(axis);
    if (seen[at]) return context.invalid("perm names axis " + std::to_string(axis) + " twice");
    seen[at] = true;
    dims.push_back(tensor.dims()[at]);
    strides.push_back(own[at]);
  }
  if (dims.size() != own.size()) return context.invalid("perm is not of the input's rank");
  return gather_strided(context, tensor, std::move(dims), 0, strides);
}

Expected<Tensor> sliced(const KernelContext& context, const Tensor& tensor, const Dims& starts, const Dims& steps, Dims dims) {
  if (dims == tensor.dims() && steps == Dims(dims.size(), 1)) return tensor;
  const Dims own = strides_of(tensor.dims());
  int64_t offset = 0;
  Dims strides;
  for (size_t i = 0; i < own.size(); ++i) {
    offset += starts[i] * own[i];
    strides.push_back(steps[i] * own[i]);
  }
  return gather_strided(context, tensor, std::move(dims), offset, strides);
}

Expected<Tensor> slices_at(const KernelContext& context, const Tensor& tensor, int64_t axis,
                           const std::vector<int64_t>& indices) {
  const size_t at = static_cast<size_t>(axis);
  Dims dims = tensor.dims();
  const int64_t extent = std::exchange(dims[at], static_cast<int64_t>(indices.size()));
  ATTN_OPT_TRY(Tensor out, context.allocate(tensor.type(), dims));
  const int64_t inner = element_count(std::span(dims).subspan(at + 1));
  const int64_t outer = element_count(std::span(dims).first(at));
  return dispatch_cells(context, tensor.type(), [&]<class T>() -> Expected<Tensor> {
    T* to = mutable_cells<T>(out);
    for (int64_t o = 0; o < outer; ++o) {
      for (const int64_t i : indices) to = std::copy_n(cells<T>(tensor) + (o * extent + i) * inner, inner, to);
    }
    return std::move(out);
  });
}

Expected<Tensor> gathered(const KernelContext& context, const Tensor& tensor, const std::vector<AxisMap>& maps,
                          const Tensor& fill) {
  Dims dims;
  for (const AxisMap& map : maps) dims.push_back(static_cast<int64_t>(map.size()));
  ATTN_OPT_TRY(Tensor out, context.allocate(tensor.type(), dims));
  const Dims own = strides_of(tensor.dims());
  const Dims walked = strides_of(dims);
  return dispatch_cells(context, tensor.type(), [&]<class T>() -> Expected<Tensor> {
    const T* from = cells<T>(tensor);
    T* to = mutable_cells<T>(out);
    const T outside = cells<T>(fill)[0];
    for (int64_t i = 0; i < out.size(); ++i) {
      int64_t offset = 0;
      for (size_t axis = 0; offset >= 0 && axis < maps.size(); ++axis) {
        const int64_t at = maps[axis][static_cast<size_t>(i / walked[axis] % dims[axis])];
        offset = at < 0 ? -1 : offset + at * own[axis];
      }
      to[i] = offset < 0 ? outside : from[offset];
    }
    return std::move(out);
  });
}

Expected<Tensor> concatenated(const KernelContext& context, std::span<const Tensor> parts, int64_t given_axis) {
  const Tensor& first = parts[0];
  ATTN_OPT_TRY(const int64_t axis, context.axis(given_axis, first.rank()));
  const size_t at = static_cast<size_t>(axis);
  Dims dims = first.dims();
  dims[at] = 0;
  for (const Tensor& part : parts) {
    ATTN_OPT_CHECK(context.same_type(first, part));
    bool fits = part.rank() == first.rank();
    for (size_t i = 0; fits && i < dims.size(); ++i) fits = i == at || part.dims()[i] == first.dims()[i];
    if (!fits) {
      return context.invalid("shapes " + print_dims(first.dims()) + " and " + print_dims(part.dims()) + " differ");
    }
    if (__builtin_add_overflow(dims[at], part.dims()[at], &dims[at])) {
      return context.invalid("the result is too large");
    }
  }
  ATTN_OPT_TRY(Tensor out, context.allocate(first.type(), dims));
  if (out.size() == 0) return out;
  const int64_t outer = element_count(std::span(dims).first(at));
  const int64_t out_row = out.size() / outer;
  return dispatch_cells(context, first.type(), [&]<class T>() -> Expected<Tensor> {
    T* to = mutable_cells<T>(out);
    for (const Tensor& part : parts) {
      const int64_t row = part.size() / outer;
      for (int64_t i = 0; i < outer; ++i) std::copy_n(cells<T>(part) + i * row, row, to + i * out_row);
      to += row;
    }
    return std::move(out);
  });
}

}  // namespace attn_opt
