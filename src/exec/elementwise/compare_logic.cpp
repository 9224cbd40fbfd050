// Comparisons, boolean and bitwise operators.
#include <functional>

#include "src/exec/dispatch.h"
#include "src/exec/elementwise/broadcast.h"
#include "src/exec/families.h"

namespace attn_opt {
namespace {

/// Comparison Op of two tensors whose type is one of TYPES; false for NaN.
template <class Op, class Types>
Outputs compare(const KernelContext& context) {
  const Tensor& a = context.input(0);
  ATTN_OPT_TRY(const Tensor b, legacy_second_operand(context));
  ATTN_OPT_CHECK(context.same_type(a, b));
  ATTN_OPT_TRY(Dims dims, broadcast_dims(context, a.dims(), b.dims()));
  ATTN_OPT_TRY(Tensor out, context.allocate(onnx::TensorProto::BOOL, std::move(dims)));
  return single(dispatch(context, a.type(), Types{}, [&]<class T>() -> Expected<Tensor> {
    broadcast_apply<T, T, bool>(a, b, out, [](const T& x, const T& y) {
      if constexpr (kIsHalf<T>)
        return Op()(static_cast<float>(x), static_cast<float>(y));
      else
        return Op()(x, y);
    });
    return std::move(out);
  }));
}

/// Op of two tensors of one of TYPES, with a result of the same type.
template <class Op, class... Ts>
Outputs combine(const KernelContext& context) {
  const Tensor& a = context.input(0);
  ATTN_OPT_TRY(const Tensor b, legacy_second_operand(context));
  ATTN_OPT_CHECK(context.same_type(a, b));
  ATTN_OPT_TRY(Dims dims, broadcast_dims(context, a.dims(), b.dims()));
  ATTN_OPT_TRY(Tensor out, context.allocate(a.type(), std::move(dims)));
  bool known = false;
  const auto apply = [&]<class T>() {
    if (data_type_of<T>() != a.type()) return;
    known = true;
    broadcast_apply<T, T, T>(a, b, out, [](T x, T y) { return static_cast<T>(Op()(x, y)); });
  };
  (apply.template operator()<Ts>(), ...);
  if (!known) return context.unsupported("element type " + type_name(a.type()));
  return single(std::move(out));
}

template <class Op>
Outputs bitwise(const KernelContext& context) {
  return combine<Op, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(context);
}

/// Neither negative nor as large as T is wide.
template <class T>
bool is_shift(T y) {
  return y >= T{0} && static_cast<uint64_t>(y) < sizeof(T) * 8;
}

struct ShiftLeft {
  template <class T>
  T operator()(T x, T y) const {
    return is_shift(y) ? static_cast<T>(static_cast<uint64_t>(x) << y) : T{0};
  }
};
/// Of signed numbers arithmetic: the sign fills what is shifted in.
struct ShiftRight {
  template <class T>
  T operator()(T x, T y) const {
    return static_cast<T>(is_shift(y) ? x >> y : (x < T{0} ? -1 : 0));
  }
};

Outputs bit_shift(const KernelContext& context) {
  const std::string direction = context.attribute_string("direction", "");
  if (direction == "LEFT") return bitwise<ShiftLeft>(context);
  if (direction == "RIGHT") return bitwise<ShiftRight>(context);
  return context.invalid("direction must be LEFT or RIGHT");
}

Outputs logical_not(const KernelContext& context) {
  const Tensor& x = context.input(0);
  if (x.type() != onnx::TensorProto::BOOL) return context.invalid("expected a bool tensor");
  ATTN_OPT_TRY(Tensor out, context.allocate(x.type(), x.dims()));
  std::ranges::transform(x.data<bool>(), out.mutable_data<bool>().begin(), std::logical_not<>());
  return single(std::move(out));
}

Outputs bitwise_not(const KernelContext& context) {
  const Tensor& x = context.input(0);
  ATTN_OPT_TRY(Tensor out, context.allocate(x.type(), x.dims()));
  return single(dispatch(context, x.type(), NumericTypes{}, [&]<class T>() -> Expected<Tensor> {
    if constexpr (std::is_integral_v<T>) {
      std::ranges::transform(x.data<T>(), out.mutable_data<T>().begin(), [](T v) { return static_cast<T>(~v); });
      return std::move(out);
    } else {
      return context.unsupported("element type " + type_name(x.type()));
    }
  }));
}

}  // namespace

void register_compare_logic(KernelRegistry& registry) {
  registry.add("Equal", 1, 19, compare<std::equal_to<>, AllTypes>);
  registry.add("Less", 1, 13, compare<std::less<>, NumericTypes>);
  registry.add("Greater", 1, 13, compare<std::greater<>, NumericTypes>);
  registry.add("LessOrEqual", 12, 16, compare<std::less_equal<>, NumericTypes>);
  registry.add("GreaterOrEqual", 12, 16, compare<std::greater_equal<>, NumericTypes>);
  registry.add("And", 1, 7, combine<std::logical_and<>, bool>);
  registry.add("Or", 1, 7, combine<std::logical_or<>, bool>);
  registry.add("Xor", 1, 7, combine<std::not_equal_to<>, bool>);
  registry.add("Not", 1, 1, logical_not);
  registry.add("BitwiseAnd", 18, 18, bitwise<std::bit_and<>>);
  registry.add("BitwiseOr", 18, 18, bitwise<std::bit_or<>>);
  registry.add("BitwiseXor", 18, 18, bitwise<std::bit_xor<>>);
  registry.add("BitwiseNot", 18, 18, bitwise_not);
  registry.add("BitShift", 11, 28, bit_shift);
}

}  // namespace attn_opt
