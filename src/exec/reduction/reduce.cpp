// Reductions over axes. Axes are an attribute before opset 18 (ReduceSum: 13) and an input from then on.
#include <cmath>
#include <limits>

#include "src/exec/dispatch.h"
#include "src/exec/families.h"
#include "src/exec/layout/strided.h"

namespace attn_opt {
namespace {

/// Accumulates in double for floating types and wraps around in 64 bits for integers.
template <class T>
using Sum = std::conditional_t<kIsFloat<T>, double, uint64_t>;

template <class T>
struct SumOf {
  Sum<T> sum{};
  void add(Compute<T> x) { sum += static_cast<Sum<T>>(x); }
  Sum<T> result(int64_t) const { return sum; }
};
template <class T>
struct MeanOf : SumOf<T> {
  Compute<T> result(int64_t count) const {
    if constexpr (kIsFloat<T>)
      return static_cast<Compute<T>>(this->sum / static_cast<double>(count));
    else
      return count == 0 ? T{} : static_cast<T>(static_cast<int64_t>(this->sum) / count);
  }
};
template <class T>
struct SumSquareOf : SumOf<T> {
  void add(Compute<T> x) { this->sum += static_cast<Sum<T>>(x) * static_cast<Sum<T>>(x); }
};
template <class T>
struct L1Of : SumOf<T> {
  void add(Compute<T> x) { this->sum += static_cast<Sum<T>>(x < Compute<T>{} ? static_cast<Compute<T>>(-x) : x); }
};
template <class T>
struct L2Of : SumSquareOf<T> {
  double result(int64_t) const { return std::sqrt(static_cast<double>(this->sum)); }
};
template <class T>
struct LogSumOf : SumOf<T> {
  double result(int64_t) const { return std::log(static_cast<double>(this->sum)); }
};
/// log(sum(exp(x))) with the largest x so far factored out.
template <class T>
struct LogSumExpOf {
  double largest = -std::numeric_limits<double>::infinity();
  double sum = 0;
  void add(Compute<T> given) {
    const auto x = static_cast<double>(given);
    if (x > largest) {
      sum = sum * std::exp(largest - x) + 1;
      largest = x;
    } else if (std::isnan(x) || std::isfinite(largest)) {
      sum += std::exp(x - largest);
    }
  }
  double result(int64_t) const { return std::log(sum) + largest; }
};
template <class T>
struct ProdOf {
  std::conditional_t<kIsFloat<T>, double, uint64_t> product = 1;
  void add(Compute<T> x) { product *= static_cast<Sum<T>>(x); }
  Sum<T> result(int64_t) const { return product; }
};
template <class T>
struct MaxOf {
  Compute<T> most = std::numeric_limits<Compute<T>>::has_infinity ? -std::numeric_limits<Compute<T>>::infinity()
                                                                  : std::numeric_limits<Compute<T>>::lowest();
  void add(Compute<T> x) {
    if (x > most || x != x) most = x;
  }
  Compute<T> result(int64_t) const { return most; }
};
template <class T>
struct MinOf {
  Compute<T> least = std::numeric_limits<Compute<T>>::has_infinity ? std::numeric_limits<Compute<T>>::infinity()
                                                                   : std::numeric_limits<Compute<T>>::max();
  void add(Compute<T> x) {
    if (x < least || x != x) least = x;
  }
  Compute<T> result(int64_t) const { return least; }
};

/// Shapes and strides of a reduction: of the axes kept, of those reduced, and the result's dims.
struct Axes {
  Dims kept, kept_strides, reduced, reduced_strides, result;
  bool nothing = false;  ///< noop_with_empty_axes
};

Expected<Axes> axes_of(const KernelContext& context) {
  const Tensor& x = context.input(0);
  ATTN_OPT_TRY(const auto given, context.integers_or_attribute(1, "axes"));
  std::vector<bool> reduces(x.dims().size(), given.empty());
  for (const int64_t one : given) {
    ATTN_OPT_TRY(const int64_t axis, context.axis(one, x.rank()));
    reduces[static_cast<size_t>(axis)] = true;
  }
  Axes axes;
  ATTN_OPT_TRY(const bool is_noop, context.attribute_flag("noop_with_empty_axes", false));
  ATTN_OPT_TRY(const bool keep, context.attribute_flag("keepdims", true));
  axes.nothing = given.empty() && is_noop;
  const Dims own = strides_of(x.dims());
  for (size_t i = 0; i < own.size(); ++i) {
    const bool reduced = reduces[i] && !axes.nothing;
    (reduced ? axes.reduced : axes.kept).push_back(x.dims()[i]);
    (reduced ? axes.reduced_strides : axes.kept_strides).push_back(own[i]);
    if (!reduced)
      axes.result.push_back(x.dims()[i]);
    else if (keep)
      axes.result.push_back(1);
  }
  return axes;
}

template <template <class> class Op, class T>
void reduce_into(const Tensor& x, const Axes& axes, Tensor& out) {
  const StridedLoop<1> inner(axes.reduced, {axes.reduced_strides});
  const int64_t count = element_count(axes.reduced);
  const T* from = x.data<T>().data();
  T* to = out.mutable_data<T>().data();
  StridedLoop<1>(axes.kept, {axes.kept_strides}).elements([&](const std::array<int64_t, 1>& base) {
    Op<T> op;
    inner.rows([&](const std::array<int64_t, 1>& at, int64_t n, const std::array<int64_t, 1>& step) {
      const T* row = from + base[0] + at[0];
      for (int64_t i = 0; i < n; ++i) op.add(static_cast<Compute<T>>(row[i * step[0]]));
    });
    *to++ = round_to<T>(op.result(count));
  });
}

template <template <class> class Op>
Outputs reduce(const KernelContext& context) {
  const Tensor& x = context.input(0);
  ATTN_OPT_TRY(const Axes axes, axes_of(context));
  // ONNX: with noop_with_empty_axes the element-wise part (square, log, ...) is still done.
  ATTN_OPT_TRY(Tensor out, context.allocate(x.type(), axes.result));
  if (out.size() == 0) return single(std::move(out));
  return single(dispatch(context, x.type(), NumericTypes{}, [&]<class T>() -> Expected<Tensor> {
    reduce_into<Op, T>(x, axes, out);
    return std::move(out);
  }));
}

/// ReduceMax and ReduceMin take bools too, as 0 and 1.
template <template <class> class Op>
Outputs reduce_order(const KernelContext& context) {
  if (context.input(0).type() != onnx::TensorProto::BOOL) return reduce<Op>(context);
  std::vector<Tensor> inputs(context.inputs.begin(), context.inputs.end());
  ATTN_OPT_TRY(inputs[0], inputs[0].cast(onnx::TensorProto::UINT8));
  KernelContext as_bytes = context;
  as_bytes.inputs = inputs;
  ATTN_OPT_TRY(const auto outputs, reduce<Op>(as_bytes));
  return single(outputs[0].cast(onnx::TensorProto::BOOL));
}

/// CumSum or CumProd along one axis.
template <template <class> class Op, class T>
void cumulate(const Tensor& x, size_t axis, bool exclusive, bool reverse, Tensor& out) {
  const std::span<const int64_t> dims(x.dims());
  const int64_t n = dims[axis];
  const int64_t inner = element_count(dims.subspan(axis + 1));
  const int64_t outer = element_count(dims.first(axis));
  const T* from = x.data<T>().data();
  T* to = out.mutable_data<T>().data();
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      Op<T> op;
      for (int64_t k = 0; k < n; ++k) {
        const int64_t at = (o * n + (reverse ? n - 1 - k : k)) * inner + i;
        if (exclusive) to[at] = round_to<T>(op.result(k));
        op.add(static_cast<Compute<T>>(from[at]));
        if (!exclusive) to[at] = round_to<T>(op.result(k + 1));
      }
    }
  }
}

template <template <class> class Op>
Outputs cumulative(const KernelContext& context) {
  const Tensor& x = context.input(0);
  ATTN_OPT_TRY(const auto axes, context.integers(context.input(1)));
  if (axes.size() != 1) return context.invalid("axis is not a scalar");
  ATTN_OPT_TRY(const int64_t axis, context.axis(axes[0], x.rank()));
  ATTN_OPT_TRY(Tensor out, context.allocate(x.type(), x.dims()));
  if (out.size() == 0) return single(std::move(out));
  return single(dispatch(context, x.type(), NumericTypes{}, [&]<class T>() -> Expected<Tensor> {
    cumulate<Op, T>(x, static_cast<size_t>(axis), context.attribute_int("exclusive", 0) != 0,
                    context.attribute_int("reverse", 0) != 0, out);
    return std::move(out);
  }));
}

}  // namespace

void register_reduce(KernelRegistry& registry) {
  registry.add("ReduceSum", 1, 13, reduce<SumOf>);
  registry.add("ReduceMean", 1, 18, reduce<MeanOf>);
  registry.add("ReduceMax", 1, 20, reduce_order<MaxOf>);
  registry.add("ReduceMin", 1, 20, reduce_order<MinOf>);
  registry.add("ReduceProd", 1, 18, reduce<ProdOf>);
  registry.add("ReduceL1", 1, 18, reduce<L1Of>);
  registry.add("ReduceL2", 1, 18, reduce<L2Of>);
  registry.add("ReduceSumSquare", 1, 18, reduce<SumSquareOf>);
  registry.add("ReduceLogSum", 1, 18, reduce<LogSumOf>);
  registry.add("ReduceLogSumExp", 1, 18, reduce<LogSumExpOf>);
  registry.add("CumSum", 11, 14, cumulative<SumOf>);
  registry.add("CumProd", 26, 26, cumulative<ProdOf>);
}

}  // namespace attn_opt
