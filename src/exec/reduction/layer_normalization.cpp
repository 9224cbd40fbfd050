// LayerNormalization, also ONNX Runtime's before opset 17, and SimplifiedLayerNormalization of ONNX Runtime.
#include <algorithm>

#include "src/exec/dispatch.h"
#include "src/exec/elementwise/broadcast.h"
#include "src/exec/families.h"
#include "src/exec/reduction/moments.h"

namespace attn_opt {
namespace {

constexpr int kFirstOfOnnx = 17;

/// Scale or bias in input I over the axes of X from AXIS on, to be repeated over those before.
Expected<std::vector<double>> trailing_operand(const KernelContext& context, const Tensor& x, size_t i, int64_t axis) {
  const Tensor& operand = context.input(i);
  const Dims dims(x.dims().begin() + (operand.rank() <= x.rank() - axis ? axis : 0), x.dims().end());
  ATTN_OPT_TRY(const Dims joint, broadcast_dims(context, dims, operand.dims()));
  if (joint != dims) return context.invalid("scale or bias does not broadcast to " + print_dims(x.dims()));
  ATTN_OPT_TRY(const Tensor full, expand(context, operand, dims));
  return context.reals(full);
}

/// What X is normalized to, and by which values of each row.
struct Normalized {
  Tensor out, mean, inverse;
};

/// (X - mean) / deviation * scale + bias over the axes from AXIS on; the deviation is about 0, and the mean 0, unless
/// it IS_CENTRED.
Expected<Normalized> normalize(const KernelContext& context, const Tensor& x, int64_t axis, bool is_centred) {
  const double epsilon = context.attribute_float("epsilon", 1e-5f);
  const int64_t count = element_count(std::span(x.dims()).subspan(static_cast<size_t>(axis)));
  ATTN_OPT_TRY(const auto scale, trailing_operand(context, x, 1, axis));
  std::vector<double> bias(1, 0);
  if (context.has(2)) {
    ATTN_OPT_TRY(bias, trailing_operand(context, x, 2, axis));
  }
  Dims row_dims = x.dims();
  std::fill(row_dims.begin() + axis, row_dims.end(), 1);
  Normalized result;
  ATTN_OPT_TRY(result.mean, context.allocate(onnx::TensorProto::DOUBLE, row_dims));
  ATTN_OPT_TRY(result.inverse, context.allocate(onnx::TensorProto::DOUBLE, row_dims));
  ATTN_OPT_TRY(result.out, context.allocate_unset(x.type(), x.dims()));
  return dispatch(context, x.type(), FloatTypes{}, [&]<class T>() -> Expected<Normalized> {
    const T* from = x.data<T>().data();
    T* to = result.out.mutable_data<T>().data();
    const auto means = result.mean.mutable_data<double>();
    const auto inverses = result.inverse.mutable_data<double>();
    const bool in_step = std::ssize(scale) == count && (std::ssize(bias) == count || !context.has(2));
    for (int64_t row = 0; row < result.mean.size() && count > 0; ++row) {
      const double mean = is_centred ? mean_of(from + row * count, count) : 0;
      const double inverse = inverse_deviation(from + row * count, count, mean, epsilon);
      means[static_cast<size_t>(row)] = mean;
      inverses[static_cast<size_t>(row)] = inverse;
      if constexpr (std::is_same_v<T, float>) {
        if (in_step) {
          normalize_row(from + row * count, count, mean, inverse, scale.data(), context.has(2) ? bias.data() : nullptr,
                        to + row * count);
          continue;
        }
      }
      for (int64_t at = row * count; at < (row + 1) * count; ++at) {
        const double normal = (static_cast<double>(static_cast<Compute<T>>(from[at])) - mean) * inverse;
        const auto i = static_cast<size_t>(at);
        to[i] = round_to<T>(normal * scale[i % scale.size()] + bias[i % bias.size()]);
      }
    }
    return std::move(result);
  });
}

/// In ONNX Runtime's operators the result is of the scale's type, which may be another than the input's.
Expected<Normalized> normalize(const KernelContext& context, bool is_centred) {
  const DataType result_type = context.input(1).type();
  Tensor x = context.input(0);
  ATTN_OPT_TRY(const int64_t axis, context.axis(context.attribute_int("axis", -1), x.rank()));
  if (context.version >= kFirstOfOnnx) {
    for (const size_t operand : {1, 2}) {
      if (!context.has(operand)) continue;
      ATTN_OPT_CHECK(context.same_type(x, context.input(operand)));
    }
  }
  if (x.type() != result_type) {
    ATTN_OPT_TRY(x, x.cast(onnx::TensorProto::DOUBLE));
  }
  ATTN_OPT_TRY(Normalized result, normalize(context, x, axis, is_centred));
  if (x.type() != result_type) {
    ATTN_OPT_TRY(result.out, result.out.cast(result_type));
  }
  const auto given = static_cast<DataType>(context.attribute_int("stash_type", onnx::TensorProto::FLOAT));
  const DataType stash = context.compute_f64 ? onnx::TensorProto::DOUBLE : given;
  ATTN_OPT_TRY(result.mean, result.mean.cast(stash));
  ATTN_OPT_TRY(result.inverse, result.inverse.cast(stash));
  return result;
}

Outputs layer_normalization(const KernelContext& context) {
  ATTN_OPT_TRY(Normalized result, normalize(context, true));
  return std::vector<Tensor>{std::move(result.out), std::move(result.mean), std::move(result.inverse)};
}

Outputs simplified_layer_normalization(const KernelContext& context) {
  ATTN_OPT_TRY(Normalized result, normalize(context, false));
  return std::vector<Tensor>{std::move(result.out), std::move(result.inverse)};
}

}  // namespace

void register_layer_normalization(KernelRegistry& registry) {
  registry.add("LayerNormalization", 1, 17, layer_normalization);
  registry.add("SimplifiedLayerNormalization", 1, 1, simplified_layer_normalization);
}

}  // namespace attn_opt
