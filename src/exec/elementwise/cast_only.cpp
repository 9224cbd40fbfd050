#include "src/exec/elementwise/cast_only.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "src/io/tensor_bytes.h"

namespace attn_opt {
namespace {

using P = onnx::TensorProto;

/// What the codes beside the finite values are: none; NaN where all bits but the sign are set; that and infinities as in
/// IEEE 754; NaN in the place of -0.
enum class Specials { kNone, kNan, kIeee, kNanForMinusZero };

/// One sign bit, then the exponent, then the mantissa.
struct Format {
  int exponent_bits, mantissa_bits, bias;
  Specials specials;

  int sign() const { return 1 << (exponent_bits + mantissa_bits); }
  /// The code of the largest finite value.
  int largest() const {
    const int all = sign() - 1;
    if (specials == Specials::kIeee) return all - (1 << mantissa_bits);
    return specials == Specials::kNan ? all - 1 : all;
  }
  int nan() const {
    switch (specials) {
      case Specials::kNone: return sign();  // of a type without NaN: -0
      case Specials::kNan: return sign() - 1;
      case Specials::kIeee: return (largest() + 1) | (1 << (mantissa_bits - 1));
      case Specials::kNanForMinusZero: return sign();
    }
    return 0;
  }
};

/// FLOAT8E8M0 is an exponent alone and has none.
Format format_of(DataType type) {
  switch (type) {
    case P::FLOAT8E4M3FN: return {4, 3, 7, Specials::kNan};
    case P::FLOAT8E4M3FNUZ: return {4, 3, 8, Specials::kNanForMinusZero};
    case P::FLOAT8E5M2: return {5, 2, 15, Specials::kIeee};
    case P::FLOAT8E5M2FNUZ: return {5, 2, 16, Specials::kNanForMinusZero};
    case P::FLOAT6E2M3: return {2, 3, 1, Specials::kNone};
    case P::FLOAT6E3M2: return {3, 2, 3, Specials::kNone};
    default: return {2, 1, 1, Specials::kNone};
  }
}

double magnitude(const Format& format, int code) {
  const int exponent = code >> format.mantissa_bits;
  const int mantissa = code & ((1 << format.mantissa_bits) - 1);
  const int leading = exponent == 0 ? 0 : 1 << format.mantissa_bits;
  return std::ldexp(leading + mantissa, std::max(exponent, 1) - format.bias - format.mantissa_bits);
}

bool is_nan(const Format& format, int code) {
  switch (format.specials) {
    case Specials::kNone: return false;
    case Specials::kNan: return (code & (format.sign() - 1)) == format.sign() - 1;
    case Specials::kIeee: return (code & (format.sign() - 1)) > format.largest() + 1;
    case Specials::kNanForMinusZero: return code == format.sign();
  }
  return false;
}

/// What a magnitude beyond the largest becomes.
int overflow_code(const Format& format, const CastRules& rules) {
  if (rules.saturate || format.specials == Specials::kNone) return format.largest();
  return format.specials == Specials::kIeee ? format.largest() + 1 : format.nan();
}

/// The code of a finite MAGNITUDE; may pass the largest.
int rounded_code(const Format& format, double magnitude) {
  const int exponent = magnitude == 0 ? -format.bias : std::ilogb(magnitude);
  const int step = std::max(exponent, 1 - format.bias) - format.mantissa_bits;
  const double steps = std::nearbyint(std::ldexp(magnitude, -step));  // at most 2^(mantissa_bits + 1)
  const int lowest_step = 1 - format.bias - format.mantissa_bits;
  return static_cast<int>(steps) + ((step - lowest_step) << format.mantissa_bits);
}

constexpr uint8_t kE8M0Nan = 0xff;

/// Casting to FLOAT8E8M0 takes the exponent of a float32, and of its sign nothing.
uint8_t exponent_code(float value, const CastRules& rules) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t exponent = (bits >> 23) & 0xffu, fraction = bits & 0x7fffffu;
  if (exponent == 0xff) {
    return fraction == 0 && rules.saturate ? uint8_t{0xfe} : kE8M0Nan;
  }
  bool up = false;
  if (rules.exponent_rounding == CastRules::ExponentRounding::kUp) up = fraction != 0;
  if (rules.exponent_rounding == CastRules::ExponentRounding::kNearest) {
    up = fraction > 0x400000u || (fraction == 0x400000u && exponent > 0);
  }
  if (up && rules.saturate && exponent == 0xfe) up = false;
  return static_cast<uint8_t>(exponent + (up ? 1 : 0));
}

std::array<float, 256> float_values(DataType type) {
  std::array<float, 256> values{};
  for (size_t code = 0; code < values.size(); ++code) values[code] = float_value(static_cast<uint8_t>(code), type);
  return values;
}

int8_t signed_value(uint8_t code, int bits) {
  return static_cast<int8_t>(static_cast<int8_t>(code << (8 - bits)) >> (8 - bits));
}

}  // namespace

bool is_cast_only(DataType type) {
  switch (type) {
    case P::FLOAT8E4M3FN:
    case P::FLOAT8E4M3FNUZ:
    case P::FLOAT8E5M2:
    case P::FLOAT8E5M2FNUZ:
    case P::FLOAT8E8M0:
    case P::FLOAT6E2M3:
    case P::FLOAT6E3M2:
    case P::FLOAT4E2M1: return true;
    default: return is_cast_only_integer(type);
  }
}

bool is_cast_only_integer(DataType type) { return type == P::INT4 || type == P::UINT4 || type == P::INT2 || type == P::UINT2; }

DataType carrier_of(DataType type) {
  if (!is_cast_only_integer(type)) return P::FLOAT;
  return type == P::INT4 || type == P::INT2 ? P::INT8 : P::UINT8;
}

float float_value(uint8_t code, DataType type) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  if (type == P::FLOAT8E8M0) return code == kE8M0Nan ? kNan : std::ldexp(1.0f, code - 127);
  const Format format = format_of(type);
  const float sign = (code & format.sign()) != 0 ? -1.0f : 1.0f;
  if (is_nan(format, code)) return kNan;
  const int unsigned_code = code & (format.sign() - 1);
  if (unsigned_code > format.largest()) return sign * std::numeric_limits<float>::infinity();
  return sign * static_cast<float>(magnitude(format, unsigned_code));
}

uint8_t float_code(double value, DataType type, const CastRules& rules) {
  if (type == P::FLOAT8E8M0) return exponent_code(static_cast<float>(value), rules);
  const Format format = format_of(type);
  const int sign = std::signbit(value) ? format.sign() : 0;
  const bool has_minus_zero = format.specials != Specials::kNanForMinusZero;
  if (std::isnan(value)) {
    return static_cast<uint8_t>(format.specials == Specials::kNone ? format.sign()
                                : has_minus_zero                   ? sign | format.nan()
                                                                   : format.nan());
  }
  int code = std::isinf(value) ? format.sign() : rounded_code(format, std::abs(value));
  if (code > format.largest()) code = overflow_code(format, rules);
  const bool unsigned_code = !has_minus_zero && (code == 0 || code == format.nan());
  return static_cast<uint8_t>(unsigned_code ? code : sign | code);
}

Tensor decoded(const Tensor& tensor) {
  const DataType type = tensor.type();
  Tensor carrier(carrier_of(type), tensor.dims());
  const auto codes = tensor.bytes();
  if (carrier.type() == P::FLOAT) {
    const auto values = float_values(type);
    const auto to = carrier.mutable_data<float>();
    for (size_t i = 0; i < codes.size(); ++i) to[i] = values[std::to_integer<size_t>(codes[i])];
  } else if (carrier.type() == P::INT8) {
    const auto to = carrier.mutable_data<int8_t>();
    const int bits = bits_per_element(type);
    for (size_t i = 0; i < codes.size(); ++i) {
      to[i] = signed_value(std::to_integer<uint8_t>(codes[i]), bits);
    }
  } else {
    const auto to = carrier.mutable_data<uint8_t>();
    for (size_t i = 0; i < codes.size(); ++i) to[i] = std::to_integer<uint8_t>(codes[i]);
  }
  return carrier;
}

Tensor encoded(const Tensor& tensor, DataType type, const CastRules& rules) {
  Tensor result(type, tensor.dims());
  const auto codes = result.mutable_bytes();
  if (is_cast_only_integer(type)) {
    const auto mask = static_cast<std::byte>((1 << bits_per_element(type)) - 1);
    const auto from = tensor.bytes();
    for (size_t i = 0; i < codes.size(); ++i) codes[i] = from[i] & mask;
  } else {
    const auto from = tensor.data<double>();
    for (size_t i = 0; i < codes.size(); ++i) codes[i] = std::byte{float_code(from[i], type, rules)};
  }
  return result;
}

void unpack(std::span<const std::byte> packed, int bits, std::span<std::byte> codes) {
  const unsigned mask = (1u << bits) - 1;
  unsigned held = 0, count = 0;
  size_t next = 0;
  for (std::byte& code : codes) {
    if (count < static_cast<unsigned>(bits)) {
      held |= std::to_integer<unsigned>(packed[next++]) << count;
      count += 8;
    }
    code = static_cast<std::byte>(held & mask);
    held >>= bits;
    count -= static_cast<unsigned>(bits);
  }
}

std::string pack(std::span<const std::byte> codes, int bits) {
  std::string packed;
  unsigned held = 0, count = 0;
  for (const std::byte code : codes) {
    held |= std::to_integer<unsigned>(code) << count;
    count += static_cast<unsigned>(bits);
    if (count < 8) continue;
    packed.push_back(static_cast<char>(held & 0xffu));
    held >>= 8;
    count -= 8;
  }
  if (count > 0) packed.push_back(static_cast<char>(held));
  return packed;
}

}  // namespace attn_opt
