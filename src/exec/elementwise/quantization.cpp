// QuantizeLinear and DequantizeLinear.
#include <cmath>
#include <limits>

#include "src/exec/dispatch.h"
#include "src/exec/elementwise/cast_only.h"
#include "src/exec/families.h"

namespace attn_opt {
namespace {

using P = onnx::TensorProto;

/// Which scale and zero point an element of X has: one for all, one for each index of an axis, or one for each block along
/// it.
struct Granularity {
  int64_t inner = 1;         ///< elements after the axis
  int64_t extent = 1;        ///< of the axis
  int64_t block = 1;         ///< indices of the axis that share a scale
  int64_t outer_scales = 0;  ///< scales from one index of the axes before to the next
  int64_t inner_scales = 0;  ///< scales from one index of the axes after to the next: 0 or 1
  int64_t axis_scales = 0;   ///< scales from one block to the next

  int64_t scale_of(int64_t element) const {
    const int64_t along = element / inner % extent, outer = element / inner / extent;
    return outer * outer_scales + along / block * axis_scales + element % inner * inner_scales;
  }
};

Expected<Granularity> granularity(const KernelContext& context, const Tensor& x, const Tensor& scale) {
  Granularity result;
  if (scale.size() == 1 && scale.rank() <= 1) return result;
  ATTN_OPT_TRY(const int64_t axis, context.axis(context.attribute_int("axis", 1), x.rank()));
  const auto at = static_cast<size_t>(axis);
  result.extent = x.dims()[at];
  result.inner = element_count(std::span(x.dims()).subspan(at + 1));
  const int64_t block = context.attribute_int("block_size", 0);
  if (block == 0) {
    if (scale.rank() != 1 || scale.size() != result.extent) {
      return context.invalid("the scale has dims " + print_dims(scale.dims()) + ", the axis " + std::to_string(result.extent) +
                             " indices");
    }
    result.axis_scales = 1;
    return result;
  }
  Dims expected = x.dims();
  if (block > 0) expected[at] = result.extent / block + (result.extent % block != 0 ? 1 : 0);
  if (block < 0 || scale.dims() != expected) {
    return context.invalid("the scale has dims " + print_dims(scale.dims()) + ", blocks of " + std::to_string(block) +
                           " ask for " + print_dims(expected));
  }
  result.block = block;
  result.inner_scales = 1;
  result.axis_scales = result.inner;
  result.outer_scales = expected[at] * result.inner;
  return result;
}

/// The values of SCALE or a zero point of any type; zeros where none is given.
Expected<std::vector<double>> parameters(const KernelContext& context, const Tensor& given, const Tensor& scale) {
  if (!given.has_value()) return std::vector<double>(static_cast<size_t>(scale.size()), 0.0);
  if (given.size() != scale.size()) return context.invalid("scale and zero point differ in dims");
  ATTN_OPT_TRY(const Tensor wide, given.cast(P::DOUBLE));
  const auto values = wide.data<double>();
  return std::vector<double>(values.begin(), values.end());
}

struct IntegerRange {
  double low = 0, high = 0;
};

/// Of the integer types that QuantizeLinear makes.
Expected<IntegerRange> integer_range(const KernelContext& context, DataType type) {
  switch (type) {
    case P::UINT8: return IntegerRange{0, 255};
    case P::INT8: return IntegerRange{-128, 127};
    case P::UINT16: return IntegerRange{0, 65535};
    case P::INT16: return IntegerRange{-32768, 32767};
    case P::UINT4: return IntegerRange{0, 15};
    case P::INT4: return IntegerRange{-8, 7};
    case P::UINT2: return IntegerRange{0, 3};
    case P::INT2: return IntegerRange{-2, 1};
    default: return context.unsupported("output type " + type_name(type));
  }
}

/// X / SCALE rounded to TYPE, which the division is done in.
double quotient(double x, double scale, DataType type) {
  if (type == P::DOUBLE) return x / scale;
  const float in_float = static_cast<float>(x) / static_cast<float>(scale);
  if (type == P::FLOAT16) return Half(in_float);
  if (type == P::BFLOAT16) return BFloat16(in_float);
  return in_float;
}

/// OTHERWISE: the type of the division, where the node says none; UNDEFINED: that of the scale.
Outputs quantize_by(const KernelContext& context, DataType otherwise) {
  const Tensor &x = context.input(0), &scale = context.input(1), &zero_point = context.input(2);
  const auto asked = static_cast<DataType>(context.attribute_int("output_dtype", P::UNDEFINED));
  const DataType type = zero_point.has_value() ? zero_point.type() : asked != P::UNDEFINED ? asked : P::UINT8;
  ATTN_OPT_TRY(const Granularity granular, granularity(context, x, scale));
  ATTN_OPT_TRY(const auto scales, parameters(context, scale, scale));
  ATTN_OPT_TRY(const auto zeros, parameters(context, zero_point, scale));
  ATTN_OPT_CHECK(context.within_budget(x.size(), 2 * sizeof(double)));
  ATTN_OPT_TRY(Tensor wide, x.cast(P::DOUBLE));
  const bool to_float = is_cast_only(type) && !is_cast_only_integer(type);
  IntegerRange range;
  if (!to_float) {
    ATTN_OPT_TRY(range, integer_range(context, type));
  }
  const auto given = static_cast<DataType>(context.attribute_int("precision", P::UNDEFINED));
  const DataType precision = given != P::UNDEFINED ? given : otherwise != P::UNDEFINED ? otherwise : scale.type();
  Tensor quantized(P::DOUBLE, x.dims());
  const auto from = wide.data<double>();
  const auto to = quantized.mutable_data<double>();
  for (size_t i = 0; i < from.size(); ++i) {
    const auto at = static_cast<size_t>(granular.scale_of(static_cast<int64_t>(i)));
    const double value = quotient(from[i], scales[at], precision);
    if (to_float) {
      to[i] = value + zeros[at];
    } else {
      to[i] = std::clamp(std::isnan(value) ? 0.0 : std::nearbyint(value) + zeros[at], range.low, range.high);
    }
  }
  CastRules rules;
  rules.saturate = context.attribute_int("saturate", 1) != 0;
  return single(quantized.cast(type, rules));
}

Outputs quantize(const KernelContext& context) { return quantize_by(context, P::UNDEFINED); }

/// Runtimes divide in float32 where no attribute says otherwise.
Outputs quantize_22(const KernelContext& context) { return quantize_by(context, P::FLOAT); }

Outputs dequantize(const KernelContext& context) {
  const Tensor &x = context.input(0), &scale = context.input(1), &zero_point = context.input(2);
  ATTN_OPT_TRY(const Granularity granular, granularity(context, x, scale));
  ATTN_OPT_TRY(const auto scales, parameters(context, scale, scale));
  ATTN_OPT_TRY(const auto zeros, parameters(context, zero_point, scale));
  const auto asked = static_cast<DataType>(context.attribute_int("output_dtype", P::UNDEFINED));
  const DataType type = asked != P::UNDEFINED ? asked : scale.type();
  ATTN_OPT_CHECK(context.within_budget(x.size(), 2 * sizeof(double)));
  ATTN_OPT_TRY(const Tensor wide, x.cast(P::DOUBLE));
  const auto from = wide.data<double>();
  const auto compute = [&]<class T>() -> Expected<Tensor> {
    Tensor result(data_type_of<T>(), x.dims());
    const auto to = result.mutable_data<T>();
    for (size_t i = 0; i < from.size(); ++i) {
      const auto at = static_cast<size_t>(granular.scale_of(static_cast<int64_t>(i)));
      to[i] = static_cast<T>(from[i] - zeros[at]) * static_cast<T>(scales[at]);
    }
    return result;
  };
  ATTN_OPT_TRY(const Tensor result, scale.type() == P::DOUBLE ? compute.operator()<double>() : compute.operator()<float>());
  return single(result.cast(type));
}

}  // namespace

void register_quantization(KernelRegistry& registry) {
  registry.add("QuantizeLinear", 10, 22, quantize_22);
  registry.add("QuantizeLinear", 23, 28, quantize);
  registry.add("DequantizeLinear", 10, 28, dequantize);
}

}  // namespace attn_opt
