// Mathematical functions of one tensor.
#include <cmath>
#include <limits>
#include <utility>

#include "src/exec/elementwise/broadcast.h"
#include "src/exec/elementwise/elementwise.h"
#include "src/exec/elementwise/vector_functions.h"
#include "src/exec/families.h"

namespace attn_opt {
namespace {

/// A functor for the function template EXPRESSION of x.
#define ATTN_OPT_UNARY(Name, expression) \
  struct Name {                          \
    template <class T>                   \
    T operator()(T x) const {            \
      return expression;                 \
    }                                    \
  };
ATTN_OPT_UNARY(AbsOp, x < T{} ? static_cast<T>(T{} - x) : static_cast<T>(x + T{}))  // + 0 clears the sign of -0
ATTN_OPT_UNARY(NegOp, static_cast<T>(-x))
ATTN_OPT_UNARY(SignOp, x > T{} ? T{1} : (x < T{} ? static_cast<T>(T{} - T{1}) : x))
ATTN_OPT_UNARY(SqrtOp, std::sqrt(x))
ATTN_OPT_UNARY(ExpOp, std::exp(x))
ATTN_OPT_UNARY(LogOp, std::log(x))
ATTN_OPT_UNARY(ErfOp, std::erf(x))
ATTN_OPT_UNARY(SinOp, std::sin(x))
ATTN_OPT_UNARY(CosOp, std::cos(x))
ATTN_OPT_UNARY(TanOp, std::tan(x))
ATTN_OPT_UNARY(AsinOp, std::asin(x))
ATTN_OPT_UNARY(AcosOp, std::acos(x))
ATTN_OPT_UNARY(AtanOp, std::atan(x))
ATTN_OPT_UNARY(SinhOp, std::sinh(x))
ATTN_OPT_UNARY(CoshOp, std::cosh(x))
ATTN_OPT_UNARY(TanhOp, std::tanh(x))
ATTN_OPT_UNARY(AsinhOp, std::asinh(x))
ATTN_OPT_UNARY(AcoshOp, std::acosh(x))
ATTN_OPT_UNARY(AtanhOp, std::atanh(x))
ATTN_OPT_UNARY(FloorOp, std::floor(x))
ATTN_OPT_UNARY(CeilOp, std::ceil(x))
ATTN_OPT_UNARY(RoundOp, std::nearbyint(x))
ATTN_OPT_UNARY(ReciprocalOp, T{1} / x)
#undef ATTN_OPT_UNARY

struct SigmoidOp {
  template <class T>
  T operator()(T x) const {
    if (x >= T{}) return T{1} / (T{1} + std::exp(-x));
    const T e = std::exp(x);
    return e / (T{1} + e);
  }
};

template <class Op>
Outputs on_floats(const KernelContext& context) {
  return map_elements<FloatTypes>(context, Op());
}

/// As on_floats(), but floats by FUNCTION.
template <class Op, void (*kFunction)(const float*, int64_t, float*)>
Outputs in_vectors(const KernelContext& context) {
  const Tensor& x = context.input(0);
  if (x.type() != onnx::TensorProto::FLOAT) return on_floats<Op>(context);
  ATTN_OPT_TRY(Tensor out, context.allocate_unset(x.type(), x.dims()));
  kFunction(x.data<float>().data(), x.size(), out.mutable_data<float>().data());
  return single(std::move(out));
}

template <class Op>
Outputs on_numbers(const KernelContext& context) {
  return map_elements<NumericTypes>(context, Op());
}

template <class Test>
Outputs classify(const KernelContext& context, Test test) {
  const Tensor& x = context.input(0);
  ATTN_OPT_TRY(Tensor out, context.allocate(onnx::TensorProto::BOOL, x.dims()));
  return single(dispatch(context, x.type(), FloatTypes{}, [&]<class T>() -> Expected<Tensor> {
    std::ranges::transform(x.data<T>(), out.mutable_data<bool>().begin(),
                           [&](T v) { return test(static_cast<Compute<T>>(v)); });
    return std::move(out);
  }));
}

Outputs is_nan(const KernelContext& context) {
  return classify(context, [](auto x) { return std::isnan(x); });
}

Outputs is_inf(const KernelContext& context) {
  const bool positive = context.attribute_int("detect_positive", 1) != 0;
  const bool negative = context.attribute_int("detect_negative", 1) != 0;
  return classify(context, [=](auto x) { return std::isinf(x) && (x > 0 ? positive : negative); });
}

/// A bound of Clip: an input of one element or, before opset 11, an attribute; LIMIT if it has none.
template <class T>
Expected<Compute<T>> read_bound(const KernelContext& context, size_t i, const char* name, Compute<T> limit) {
  if (context.has(i)) {
    const Tensor& tensor = context.input(i);
    ATTN_OPT_CHECK(context.same_type(context.input(0), tensor));
    if (tensor.size() != 1) return context.invalid("a bound is not a scalar");
    return static_cast<Compute<T>>(tensor.data<T>()[0]);
  }
  const auto* attribute = context.version < 11 ? context.attribute(name) : nullptr;
  return attribute != nullptr ? static_cast<Compute<T>>(attribute->f()) : limit;
}

/// The ends of T, or of float where it is computed AS_FLOAT, which bound what has no bound (ONNX Clip-6 to -13, "default":
/// numeric_limits::lowest() and max()).
template <class T>
std::pair<Compute<T>, Compute<T>> ends_of(bool as_float) {
  using Limits = std::numeric_limits<Compute<T>>;
  if constexpr (!kIsFloat<T>) return {Limits::lowest(), Limits::max()};
  const auto most = static_cast<Compute<T>>(largest_finite(as_float ? DataType(onnx::TensorProto::FLOAT) : data_type_of<T>()));
  return {static_cast<Compute<T>>(-most), most};
}

/// NaN stays NaN, infinities become numbers, but those of halves up to 11, which ONNX Runtime computes in float there; where
/// min > max every element becomes max. Doubles that stand for another type stand for float.
Outputs clip(const KernelContext& context) {
  return dispatch(context, context.input(0).type(), NumericTypes{}, [&]<class T>() -> Outputs {
    const bool is_half_in_float = context.version < 12 && data_type_of<T>() == onnx::TensorProto::FLOAT16;
    const auto [lowest, largest] = ends_of<T>(context.compute_f64 || is_half_in_float);
    ATTN_OPT_TRY(const Compute<T> low, read_bound<T>(context, 1, "min", lowest));
    ATTN_OPT_TRY(const Compute<T> high, read_bound<T>(context, 2, "max", largest));
    return map_elements<TypeList<T>>(context, [=](Compute<T> x) {
      if (x < low) x = low;
      return x > high ? high : x;
    });
  });
}

}  // namespace

void register_elementwise_unary(KernelRegistry& registry) {
  registry.add("Abs", 1, 13, on_numbers<AbsOp>);
  registry.add("Neg", 1, 13, on_numbers<NegOp>);
  registry.add("Sign", 9, 13, on_numbers<SignOp>);
  registry.add("Sqrt", 1, 13, on_floats<SqrtOp>);
  registry.add("Exp", 1, 13, on_floats<ExpOp>);
  registry.add("Log", 1, 13, on_floats<LogOp>);
  registry.add("Erf", 9, 13, in_vectors<ErfOp, error_functions>);
  registry.add("Sin", 7, 22, on_floats<SinOp>);
  registry.add("Cos", 7, 22, on_floats<CosOp>);
  registry.add("Tan", 7, 22, on_floats<TanOp>);
  registry.add("Asin", 7, 22, on_floats<AsinOp>);
  registry.add("Acos", 7, 22, on_floats<AcosOp>);
  registry.add("Atan", 7, 22, on_floats<AtanOp>);
  registry.add("Sinh", 9, 22, on_floats<SinhOp>);
  registry.add("Cosh", 9, 22, on_floats<CoshOp>);
  registry.add("Tanh", 1, 13, in_vectors<TanhOp, hyperbolic_tangents>);
  registry.add("Asinh", 9, 22, on_floats<AsinhOp>);
  registry.add("Acosh", 9, 22, on_floats<AcoshOp>);
  registry.add("Atanh", 9, 22, on_floats<AtanhOp>);
  registry.add("Floor", 1, 13, on_floats<FloorOp>);
  registry.add("Ceil", 1, 13, on_floats<CeilOp>);
  registry.add("Round", 11, 22, on_floats<RoundOp>);
  registry.add("Reciprocal", 1, 13, on_floats<ReciprocalOp>);
  registry.add("Sigmoid", 1, 13, on_floats<SigmoidOp>);
  registry.add("IsNaN", 9, 20, is_nan);
  registry.add("IsInf", 10, 20, is_inf);
  registry.add("Clip", 1, 13, clip);
}

}  // namespace attn_opt
