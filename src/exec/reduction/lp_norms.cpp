// What is made of Lp norms: LpPool, GlobalLpPool and LpNormalization.
#include <cmath>

#include "src/exec/dispatch.h"
#include "src/exec/families.h"
#include "src/exec/layout/strided.h"
#include "src/exec/spatial/window.h"

namespace attn_opt {
namespace {

/// (sum |x|^p)^(1/p)
class LpNorm {
 public:
  explicit LpNorm(double p) : p_(p) {}

  void add(double x) {
    x = std::abs(x);
    sum_ += p_ == 1 ? x : (p_ == 2 ? x * x : std::pow(x, p_));
  }
  double result() const { return p_ == 1 ? sum_ : (p_ == 2 ? std::sqrt(sum_) : std::pow(sum_, 1 / p_)); }

 private:
  double p_;
  double sum_ = 0;
};

template <class T>
double wide(T value) {
  return static_cast<double>(static_cast<Compute<T>>(value));
}

/// A float before opset 2, an integer since.
Expected<double> read_order(const KernelContext& context) {
  const double p = context.version < 2 && context.node.op_type() != "LpNormalization"
                       ? context.attribute_float("p", 2)
                       : static_cast<double>(context.attribute_int("p", 2));
  if (!(p > 0 && std::isfinite(p))) return context.invalid("p is out of range");
  return p;
}

Outputs lp_pool(const KernelContext& context) {
  const Tensor& x = context.input(0);
  ATTN_OPT_TRY(const double p, read_order(context));
  ATTN_OPT_TRY(const Window w, read_window(context, x.dims(), context.attribute_ints("kernel_shape")));
  ATTN_OPT_TRY(Tensor out, context.allocate(x.type(), output_dims(x.dims(), w)));
  if (out.size() == 0) return single(std::move(out));
  WindowWalk walk(w, strides_of(w.in));
  return single(dispatch(context, x.type(), FloatTypes{}, [&]<class T>() -> Expected<Tensor> {
    const T* from = x.data<T>().data();
    T* to = out.mutable_data<T>().data();
    for (int64_t c = 0; c < x.dims()[0] * x.dims()[1]; ++c, from += element_count(w.in)) {
      Dims at(w.rank(), 0);
      do {
        LpNorm norm(p);
        walk.visit(at, [&](int64_t offset) { norm.add(wide(from[offset])); });
        *to++ = round_to<T>(norm.result());
      } while (next_index(at, w.out));
    }
    return std::move(out);
  }));
}

/// Calls visit(offset of the first, step, count) for each run of elements along AXIS of DIMS.
template <class Visit>
void visit_runs(const Dims& dims, size_t axis, Visit&& visit) {
  const int64_t inner = element_count(std::span(dims).subspan(axis + 1));
  const int64_t outer = element_count(std::span(dims).first(axis));
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) visit(o * dims[axis] * inner + i, inner, dims[axis]);
  }
}

Outputs global_lp_pool(const KernelContext& context) {
  const Tensor& x = context.input(0);
  ATTN_OPT_TRY(const double p, read_order(context));
  ATTN_OPT_TRY(Tensor out, allocate_per_channel(context));
  return single(dispatch(context, x.type(), FloatTypes{}, [&]<class T>() -> Expected<Tensor> {
    const T* from = x.data<T>().data();
    for (T& to : out.mutable_data<T>()) {
      LpNorm norm(p);
      for (int64_t i = 0; i < x.size() / out.size(); ++i) norm.add(wide(*from++));
      to = round_to<T>(norm.result());
    }
    return std::move(out);
  }));
}

/// Each run along the axis divided by its norm; zeros stay where that is 0.
Outputs lp_normalization(const KernelContext& context) {
  const Tensor& x = context.input(0);
  ATTN_OPT_TRY(const double p, read_order(context));
  if (p != 1 && p != 2) return context.invalid("p is neither 1 nor 2");
  ATTN_OPT_TRY(const int64_t axis, context.axis(context.attribute_int("axis", -1), x.rank()));
  ATTN_OPT_TRY(Tensor out, context.allocate(x.type(), x.dims()));
  if (out.size() == 0) return single(std::move(out));
  return single(dispatch(context, x.type(), FloatTypes{}, [&]<class T>() -> Expected<Tensor> {
    visit_runs(x.dims(), static_cast<size_t>(axis), [&](int64_t first, int64_t step, int64_t count) {
      const T* from = x.data<T>().data() + first;
      T* to = out.mutable_data<T>().data() + first;
      LpNorm norm(p);
      for (int64_t i = 0; i < count; ++i) norm.add(wide(from[i * step]));
      const double divisor = norm.result();
      for (int64_t i = 0; i < count && divisor != 0; ++i) to[i * step] = round_to<T>(wide(from[i * step]) / divisor);
    });
    return std::move(out);
  }));
}

}  // namespace

void register_lp_norms(KernelRegistry& registry) {
  registry.add("LpPool", 1, 22, lp_pool);
  registry.add("GlobalLpPool", 1, 22, global_lp_pool);
  registry.add("LpNormalization", 1, 22, lp_normalization);
}

}  // namespace attn_opt
