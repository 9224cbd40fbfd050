// Arithmetic of two or more tensors that broadcast against each other.
#include <cmath>
#include <limits>

#include "src/exec/dispatch.h"
#include "src/exec/elementwise/broadcast.h"
#include "src/exec/families.h"

namespace attn_opt {
namespace {

/// Integer arithmetic wraps around, as numpy's does.
template <class T, class F>
T wrapping(T a, T b, F f) {
  return static_cast<T>(f(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
}

struct AddOp {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>)
      return wrapping(a, b, std::plus<uint64_t>());
    else
      return a + b;
  }
};
struct SubOp {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>)
      return wrapping(a, b, std::minus<uint64_t>());
    else
      return a - b;
  }
};
struct MulOp {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>)
      return wrapping(a, b, std::multiplies<uint64_t>());
    else
      return a * b;
  }
};
struct DivOp {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_signed_v<T> && std::is_integral_v<T>) {
      if (b == T{-1}) return SubOp()(T{0}, a);
    }
    return static_cast<T>(a / b);
  }
};
/// Remainder with the divisor's sign (Python's %).
struct FloorModOp {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      const T r = std::fmod(a, b);
      return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    } else if constexpr (std::is_signed_v<T>) {
      if (b == T{-1}) return 0;
      const T r = static_cast<T>(a % b);
      return r != 0 && (r < 0) != (b < 0) ? static_cast<T>(r + b) : r;
    } else {
      return static_cast<T>(a % b);
    }
  }
};
/// Remainder with the dividend's sign (C's fmod).
struct TruncatedModOp {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>)
      return std::fmod(a, b);
    else if constexpr (std::is_signed_v<T>)
      return b == T{-1} ? T{0} : static_cast<T>(a % b);
    else
      return static_cast<T>(a % b);
  }
};
struct MaxOp {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(a)) return a;
      if (std::isnan(b)) return b;
    }
    return a < b ? b : a;
  }
};
struct MinOp {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(a)) return a;
      if (std::isnan(b)) return b;
    }
    return b < a ? b : a;
  }
};

template <class Op>
Expected<Tensor> arithmetic(const KernelContext& context, const Tensor& a, const Tensor& b) {
  ATTN_OPT_CHECK(context.same_type(a, b));
  ATTN_OPT_TRY(Dims dims, broadcast_dims(context, a.dims(), b.dims()));
  ATTN_OPT_TRY(Tensor out, context.allocate_unset(a.type(), std::move(dims)));
  return dispatch(context, a.type(), NumericTypes{}, [&]<class T>() -> Expected<Tensor> {
    broadcast_apply<T, T, T>(
        a, b, out, [](T x, T y) { return round_to<T>(Op()(static_cast<Compute<T>>(x), static_cast<Compute<T>>(y))); });
    return std::move(out);
  });
}

template <class Op>
Outputs binary(const KernelContext& context) {
  ATTN_OPT_TRY(const Tensor b, legacy_second_operand(context));
  return single(arithmetic<Op>(context, context.input(0), b));
}

Status no_integer_zero(const KernelContext& context) {
  const Tensor& divisor = context.input(1);
  if (is_floating(divisor.type())) return {};
  return dispatch(context, divisor.type(), NumericTypes{}, [&]<class T>() -> Status {
    for (const T value : divisor.data<T>()) {
      if (value == T{}) return context.invalid("integer division by zero");
    }
    return {};
  });
}

Outputs divide(const KernelContext& context) {
  ATTN_OPT_CHECK(no_integer_zero(context));
  return binary<DivOp>(context);
}

Outputs mod(const KernelContext& context) {
  ATTN_OPT_CHECK(no_integer_zero(context));
  return context.attribute_int("fmod", 0) != 0 ? binary<TruncatedModOp>(context) : binary<FloorModOp>(context);
}

template <class Op>
Outputs variadic(const KernelContext& context) {
  Tensor sum = context.input(0);
  for (size_t i = 1; i < context.inputs.size(); ++i) {
    ATTN_OPT_TRY(sum, arithmetic<Op>(context, sum, context.input(i)));
  }
  return single(std::move(sum));
}

/// Mean of halves rounds once: the sum is kept in float.
Outputs mean(const KernelContext& context) {
  const DataType type = context.input(0).type();
  if (!is_floating(type)) return context.unsupported("element type " + type_name(type));
  const DataType wide = type == onnx::TensorProto::DOUBLE ? type : onnx::TensorProto::FLOAT;
  ATTN_OPT_TRY(Tensor sum, context.input(0).cast(wide));
  for (size_t i = 1; i < context.inputs.size(); ++i) {
    ATTN_OPT_TRY(const Tensor next, context.input(i).cast(wide));
    ATTN_OPT_TRY(sum, arithmetic<AddOp>(context, sum, next));
  }
  ATTN_OPT_TRY(const Tensor count, Tensor::scalar(static_cast<double>(context.inputs.size())).cast(wide));
  ATTN_OPT_TRY(const Tensor average, arithmetic<DivOp>(context, sum, count));
  return single(average.cast(type));
}

template <class T>
T integer_power(T base, uint64_t exponent) {
  T result = 1;
  for (; exponent != 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result = MulOp()(result, base);
    base = MulOp()(base, base);
  }
  return result;
}

template <class T, class E>
T power(T base, E exponent) {
  if constexpr (std::is_integral_v<T> && std::is_integral_v<E>) {
    if (!std::is_signed_v<E> || exponent >= E{0}) return integer_power(base, static_cast<uint64_t>(exponent));
    return base == T{1} ? T{1} : T{0};
  } else if constexpr (std::is_integral_v<T>) {
    const double value = std::pow(static_cast<double>(base), static_cast<double>(static_cast<Compute<E>>(exponent)));
    const bool fits = value >= static_cast<double>(std::numeric_limits<T>::min()) &&
                      value < static_cast<double>(std::numeric_limits<T>::max());
    return fits ? static_cast<T>(value) : std::numeric_limits<T>::max();
  } else {
    const double value =
        std::pow(static_cast<double>(static_cast<Compute<T>>(base)), static_cast<double>(static_cast<Compute<E>>(exponent)));
    return round_to<T>(value);
  }
}

/// They hold every number of all types: each pair of a base's type and an exponent's is a loop of its own.
using ExponentTypes = TypeList<double, int64_t, uint64_t>;

Expected<Tensor> widened(const Tensor& exponent) {
  using Type = onnx::TensorProto;
  if (is_floating(exponent.type())) return exponent.cast(Type::DOUBLE);
  const bool is_unsigned = exponent.type() == Type::UINT8 || exponent.type() == Type::UINT16 ||
                           exponent.type() == Type::UINT32 || exponent.type() == Type::UINT64;
  return exponent.cast(is_unsigned ? Type::UINT64 : Type::INT64);
}

Outputs pow(const KernelContext& context) {
  const Tensor& base = context.input(0);
  ATTN_OPT_TRY(const Tensor given, legacy_second_operand(context));
  ATTN_OPT_TRY(const Tensor exponent, widened(given));
  ATTN_OPT_TRY(Dims dims, broadcast_dims(context, base.dims(), exponent.dims()));
  ATTN_OPT_TRY(Tensor out, context.allocate(base.type(), std::move(dims)));
  return single(dispatch(context, base.type(), NumericTypes{}, [&]<class T>() -> Expected<Tensor> {
    return dispatch(context, exponent.type(), ExponentTypes{}, [&]<class E>() -> Expected<Tensor> {
      broadcast_apply<T, E, T>(base, exponent, out, power<T, E>);
      return std::move(out);
    });
  }));
}

Outputs prelu(const KernelContext& context) {
  const Tensor& x = context.input(0);
  const Tensor& slope = context.input(1);
  ATTN_OPT_CHECK(context.same_type(x, slope));
  Dims slope_dims = slope.dims();
  if (context.version < 7 && slope.rank() == 1 && x.rank() > 1) {
    slope_dims.resize(static_cast<size_t>(x.rank() - 1), 1);
  }
  const Tensor placed = slope.reshaped(std::move(slope_dims));
  ATTN_OPT_TRY(Dims dims, broadcast_dims(context, x.dims(), placed.dims()));
  ATTN_OPT_TRY(Tensor out, context.allocate(x.type(), std::move(dims)));
  return single(dispatch(context, x.type(), NumericTypes{}, [&]<class T>() -> Expected<Tensor> {
    broadcast_apply<T, T, T>(x, placed, out, [](T value, T factor) {
      const auto v = static_cast<Compute<T>>(value);
      return v < Compute<T>{} ? round_to<T>(MulOp()(v, static_cast<Compute<T>>(factor))) : value;
    });
    return std::move(out);
  }));
}

}  // namespace

void register_elementwise_binary(KernelRegistry& registry) {
  registry.add("Add", 1, 14, binary<AddOp>);
  registry.add("Sub", 1, 14, binary<SubOp>);
  registry.add("Mul", 1, 14, binary<MulOp>);
  registry.add("Div", 1, 14, divide);
  registry.add("Mod", 10, 28, mod);
  registry.add("Pow", 1, 15, pow);
  registry.add("Min", 1, 13, variadic<MinOp>);
  registry.add("Max", 1, 13, variadic<MaxOp>);
  registry.add("Sum", 1, 13, variadic<AddOp>);
  registry.add("Mean", 1, 13, mean);
  registry.add("PRelu", 1, 16, prelu);
}

}  // namespace attn_opt
