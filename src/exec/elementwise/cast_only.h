// Types that operators only cast, quantize and move: floats of 8, 6 and 4 bits and integers of 4 and 2. A Tensor holds
// the code of each element in a byte of its own.
#pragma once

#include <cstdint>
#include <span>

#include "attn_opt/tensor.h"

namespace attn_opt {

/// True for INT4, UINT4, INT2 and UINT2.
bool is_cast_only_integer(DataType type);

/// The type that holds every value of TYPE and that arithmetic takes: FLOAT, INT8 or UINT8.
DataType carrier_of(DataType type);

/// TENSOR in the carrier of its type.
Tensor decoded(const Tensor& tensor);
/// Integers from INT8 or UINT8, whose upper bits are dropped; floats from DOUBLE.
Tensor encoded(const Tensor& tensor, DataType type, const CastRules& rules);

/// The code of VALUE in a float TYPE: rounded to nearest even, out of range and NaN as ONNX's Cast says.
uint8_t float_code(double value, DataType type, const CastRules& rules);
/// The value of CODE in a float TYPE.
float float_value(uint8_t code, DataType type);

/// PACKED codes of BITS each, lowest bits first, one to a byte of CODES.
void unpack(std::span<const std::byte> packed, int bits, std::span<std::byte> codes);
std::string pack(std::span<const std::byte> codes, int bits);

}  // namespace attn_opt
