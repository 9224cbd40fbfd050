// Floating values rounded to the values that another type has, many at once.
#pragma once

#include <bit>

#include "attn_opt/tensor.h"

namespace attn_opt {

/// X as a FLOAT16 would hold it, to nearest even; without branches, for loops that the compiler makes parallel.
[[gnu::always_inline]] inline float as_float16(float x) {
  const auto word = std::bit_cast<uint32_t>(x);
  const uint32_t magnitude = word & 0x7fffffffu;
  const uint32_t normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u)) & ~0x1fffu;
  const auto small = std::bit_cast<uint32_t>((std::bit_cast<float>(magnitude) + 0.5f) - 0.5f);
  uint32_t rounded = magnitude < 0x38800000u ? small : normal;  // below 2^-14 the step is 2^-24, that of [0.5, 1)
  rounded = magnitude >= 0x477ff000u ? 0x7f800000u : rounded;   // rounds to 2^16 or above: infinity
  rounded = magnitude > 0x7f800000u ? magnitude : rounded;
  return std::bit_cast<float>(rounded | (word & 0x80000000u));
}

[[gnu::always_inline]] inline float as_bfloat16(float x) {
  const auto word = std::bit_cast<uint32_t>(x);
  const uint32_t rounded = (word + 0x7fffu + ((word >> 16) & 1u)) & 0xffff0000u;
  return std::bit_cast<float>((word & 0x7fffffffu) > 0x7f800000u ? word : rounded);
}

/// Rounds COUNT values to those of floating TYPE; does nothing if C is no wider.
template <class C>
[[gnu::always_inline]] inline void round_to_type(C* values, int64_t count, DataType type) {
  if (type == onnx::TensorProto::FLOAT16) {
    for (int64_t i = 0; i < count; ++i) values[i] = as_float16(static_cast<float>(values[i]));
  } else if (type == onnx::TensorProto::BFLOAT16) {
    for (int64_t i = 0; i < count; ++i) values[i] = as_bfloat16(static_cast<float>(values[i]));
  } else if (type == onnx::TensorProto::FLOAT && sizeof(C) > sizeof(float)) {
    for (int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(values[i]);
  }
}

}  // namespace attn_opt
