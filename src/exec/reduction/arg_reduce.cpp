// ArgMax, ArgMin and TopK.
#include <cmath>
#include <numeric>

#include "src/exec/dispatch.h"
#include "src/exec/families.h"

namespace attn_opt {
namespace {

/// An axis of a tensor: OUTER * INNER rows of COUNT elements that lie INNER apart.
struct AxisRows {
  int64_t outer = 1, count = 1, inner = 1;
  int64_t start(int64_t row) const { return (row / inner) * count * inner + row % inner; }
};

Expected<AxisRows> rows_along(const KernelContext& context, int64_t given) {
  const std::span<const int64_t> dims(context.input(0).dims());
  ATTN_OPT_TRY(const int64_t axis, context.axis(given, context.input(0).rank()));
  const auto at = static_cast<size_t>(axis);
  return AxisRows{element_count(dims.first(at)), dims[at], element_count(dims.subspan(at + 1))};
}

/// Order of selection; NaN comes before numbers, as numpy's argmax and argmin have it.
template <bool kLargest, class T>
bool precedes(T a, T b) {
  const auto x = static_cast<Compute<T>>(a);
  const auto y = static_cast<Compute<T>>(b);
  if (x != x || y != y) return x != x && y == y;
  return kLargest ? x > y : x < y;
}

template <bool kLargest>
Outputs arg_reduce(const KernelContext& context) {
  const Tensor& x = context.input(0);
  ATTN_OPT_TRY(const int64_t axis, context.axis(context.attribute_int("axis", 0), x.rank()));
  ATTN_OPT_TRY(const AxisRows rows, rows_along(context, axis));
  const bool last = context.attribute_int("select_last_index", 0) != 0;
  ATTN_OPT_TRY(const bool keeps_axis, context.attribute_flag("keepdims", true));
  Dims dims = x.dims();
  if (keeps_axis)
    dims[static_cast<size_t>(axis)] = 1;
  else
    dims.erase(dims.begin() + axis);
  ATTN_OPT_TRY(Tensor out, context.allocate(onnx::TensorProto::INT64, std::move(dims)));
  if (out.size() != 0 && rows.count == 0) return context.invalid("the axis is empty");
  return single(dispatch(context, x.type(), NumericTypes{}, [&]<class T>() -> Expected<Tensor> {
    const T* from = x.data<T>().data();
    auto to = out.mutable_data<int64_t>();
    for (int64_t row = 0; row < out.size(); ++row) {
      const T* values = from + rows.start(row);
      int64_t best = 0;
      for (int64_t i = 1; i < rows.count; ++i) {
        const T value = values[i * rows.inner];
        const T held = values[best * rows.inner];
        if (precedes<kLargest>(value, held) || (last && !precedes<kLargest>(held, value))) best = i;
      }
      to[static_cast<size_t>(row)] = best;
    }
    return std::move(out);
  }));
}

Expected<int64_t> top_count(const KernelContext& context) {
  if (context.version < 10) return context.attribute_int("k", -1);
  ATTN_OPT_TRY(const auto k, context.integers(context.input(1)));
  if (k.size() != 1) return context.invalid("k is not one number");
  return k[0];
}

template <bool kLargest, class T>
void take_top(const Tensor& x, const AxisRows& rows, int64_t k, Tensor& values, Tensor& indices) {
  const T* from = x.data<T>().data();
  T* to = values.mutable_data<T>().data();
  int64_t* to_index = indices.mutable_data<int64_t>().data();
  std::vector<int64_t> order(static_cast<size_t>(rows.count));
  const AxisRows out{rows.outer, k, rows.inner};
  for (int64_t row = 0; row < rows.outer * rows.inner; ++row) {
    const T* in = from + rows.start(row);
    std::iota(order.begin(), order.end(), 0);
    const auto before = [&](int64_t a, int64_t b) {
      const T left = in[a * rows.inner];
      const T right = in[b * rows.inner];
      if (precedes<kLargest>(left, right)) return true;
      return !precedes<kLargest>(right, left) && a < b;
    };
    std::partial_sort(order.begin(), order.begin() + k, order.end(), before);
    for (int64_t i = 0; i < k; ++i) {
      const int64_t at = out.start(row) + i * rows.inner;
      to_index[at] = order[static_cast<size_t>(i)];
      to[at] = in[to_index[at] * rows.inner];
    }
  }
}

Outputs top_k(const KernelContext& context) {
  const Tensor& x = context.input(0);
  ATTN_OPT_TRY(const int64_t axis, context.axis(context.attribute_int("axis", -1), x.rank()));
  ATTN_OPT_TRY(const AxisRows rows, rows_along(context, axis));
  ATTN_OPT_TRY(const int64_t k, top_count(context));
  if (k < 0 || k > rows.count) {
    return context.invalid("k = " + std::to_string(k) + " of " + std::to_string(rows.count));
  }
  Dims dims = x.dims();
  dims[static_cast<size_t>(axis)] = k;
  ATTN_OPT_TRY(Tensor values, context.allocate(x.type(), dims));
  ATTN_OPT_TRY(Tensor indices, context.allocate(onnx::TensorProto::INT64, std::move(dims)));
  const bool largest = context.attribute_int("largest", 1) != 0;
  return dispatch(context, x.type(), NumericTypes{}, [&]<class T>() -> Outputs {
    if (values.size() != 0) {
      if (largest)
        take_top<true, T>(x, rows, k, values, indices);
      else
        take_top<false, T>(x, rows, k, values, indices);
    }
    return std::vector<Tensor>{std::move(values), std::move(indices)};
  });
}

}  // namespace

void register_arg_reduce(KernelRegistry& registry) {
  registry.add("ArgMax", 1, 13, arg_reduce<true>);
  registry.add("ArgMin", 1, 13, arg_reduce<false>);
  registry.add("TopK", 1, 24, top_k);
}

}  // namespace attn_opt
