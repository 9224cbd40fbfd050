// From a run-time element type to a C++ type: dispatch(context, type, FloatTypes{}, []<class T>() { ... }).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "attn_opt/tensor.h"
#include "src/exec/kernel.h"

namespace attn_opt {

template <class... Ts>
struct TypeList {};

template <class... As, class... Bs>
constexpr TypeList<As..., Bs...> join(TypeList<As...>, TypeList<Bs...>) {
  return {};
}

using FloatTypes = TypeList<float, double, Half, BFloat16>;
using IntegerTypes = TypeList<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>;
using NumericTypes = decltype(join(FloatTypes{}, IntegerTypes{}));
using FixedSizeTypes = decltype(join(NumericTypes{}, TypeList<bool>{}));
using AllTypes = decltype(join(FixedSizeTypes{}, TypeList<std::string>{}));

template <class T>
inline constexpr bool kIsHalf = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <class T>
inline constexpr bool kIsFloat = kIsHalf<T> || std::is_floating_point_v<T>;

/// The type that arithmetic on T is done in.
template <class T>
using Compute = std::conditional_t<kIsHalf<T>, float, T>;
/// The type that long sums of T are kept in.
template <class T>
using Accumulator = std::conditional_t<kIsFloat<T>, double, T>;

/// Rounds once from an arithmetic type to T.
template <class T, class From>
T round_to(From value) {
  if constexpr (kIsHalf<T>)
    return T(static_cast<float>(value));
  else
    return static_cast<T>(value);
}

/// Calls visitor.operator()<T>() for the T of TYPE, or returns kUnsupported if the list lacks it.
template <class... Ts, class Visitor>
auto dispatch(const KernelContext& context, DataType type, TypeList<Ts...>, Visitor&& visitor)
    -> decltype(visitor.template operator()<float>()) {
  decltype(visitor.template operator()<float>()) result = context.unsupported("element type " + type_name(type));
  (void)((data_type_of<Ts>() == type ? (result = visitor.template operator()<Ts>(), true) : false) || ...);
  return result;
}

/// N bytes of any type that are only moved.
template <size_t N>
struct Cell {
  std::byte bytes[N];
};

/// Like dispatch for kernels that only move elements: T is a Cell of the element's size, or std::string.
template <class Visitor>
auto dispatch_cells(const KernelContext& context, DataType type, Visitor&& visitor)
    -> decltype(visitor.template operator()<Cell<1>>()) {
  if (type == onnx::TensorProto::STRING) return visitor.template operator()<std::string>();
  switch (element_size(type)) {
    case 1: return visitor.template operator()<Cell<1>>();
    case 2: return visitor.template operator()<Cell<2>>();
    case 4: return visitor.template operator()<Cell<4>>();
    case 8: return visitor.template operator()<Cell<8>>();
    default: return context.unsupported("element type " + type_name(type));
  }
}

template <class T>
const T* cells(const Tensor& tensor) {
  if constexpr (std::is_same_v<T, std::string>)
    return tensor.data<std::string>().data();
  else
    return reinterpret_cast<const T*>(tensor.bytes().data());
}

template <class T>
T* mutable_cells(Tensor& tensor) {
  if constexpr (std::is_same_v<T, std::string>)
    return tensor.mutable_data<std::string>().data();
  else
    return reinterpret_cast<T*>(tensor.mutable_bytes().data());
}

}  // namespace attn_opt
