// Products of 8-bit integers: ConvInteger, MatMulInteger, QLinearConv and QLinearMatMul, the last also of
// 8-bit floats. They are computed in double, where sums of up to 2^36 products of integers are exact.
#include <cmath>
#include <limits>

#include "src/exec/dispatch.h"
#include "src/exec/elementwise/broadcast.h"
#include "src/exec/families.h"
#include "src/exec/spatial/convolution.h"

namespace attn_opt {
namespace {

using P = onnx::TensorProto;

using ByteTypes = TypeList<int8_t, uint8_t>;

bool is_float8(DataType type) {
  return type == P::FLOAT8E4M3FN || type == P::FLOAT8E4M3FNUZ || type == P::FLOAT8E5M2 || type == P::FLOAT8E5M2FNUZ;
}

/// A vector that holds one value for each index of AXIS, shaped to broadcast to RANK axes; else TENSOR as it
/// is.
Tensor along(const Tensor& tensor, int64_t axis, int64_t rank) {
  if (tensor.rank() != 1 || axis < 0) return tensor;
  Dims dims(static_cast<size_t>(rank), 1);
  dims[static_cast<size_t>(axis)] = tensor.size();
  return tensor.reshaped(std::move(dims));
}

/// f(a, b) of two tensors of doubles.
template <class F>
Expected<Tensor> combined(const KernelContext& context, const Tensor& a, const Tensor& b, F&& f) {
  ATTN_OPT_TRY(Dims dims, broadcast_dims(context, a.dims(), b.dims()));
  ATTN_OPT_TRY(Tensor out, context.allocate(onnx::TensorProto::DOUBLE, std::move(dims)));
  broadcast_apply<double, double, double>(a, b, out, f);
  return out;
}

/// kUnsupported unless INPUTS are 8-bit integers, or 8-bit floats where the operator ALLOWS_FLOAT8.
Status check_types(const KernelContext& context, std::initializer_list<size_t> inputs, bool allows_float8) {
  for (const size_t i : inputs) {
    const DataType type = context.input(i).type();
    if (allows_float8 && is_float8(type)) continue;
    ATTN_OPT_CHECK(dispatch(context, type, ByteTypes{}, []<class T>() -> Status { return {}; }));
  }
  return {};
}

/// Input I less its zero point, which is input ZERO_POINT: one value, one for each index of AXIS, or any
/// shape that broadcasts to the input's.
Expected<Tensor> centred(const KernelContext& context, size_t i, size_t zero_point, int64_t axis) {
  const Tensor& x = context.input(i);
  ATTN_OPT_CHECK(context.within_budget(x.size(), sizeof(double)));
  ATTN_OPT_TRY(Tensor wide, x.cast(onnx::TensorProto::DOUBLE));
  if (!context.has(zero_point)) return wide;
  ATTN_OPT_CHECK(context.same_type(x, context.input(zero_point)));
  ATTN_OPT_TRY(const Tensor zero, context.input(zero_point).cast(onnx::TensorProto::DOUBLE));
  const Tensor shaped = zero.size() == 1 ? zero.reshaped({}) : along(zero, axis, x.rank());
  ATTN_OPT_TRY(Tensor result, combined(context, wide, shaped, [](double a, double b) { return a - b; }));
  if (result.dims() != x.dims()) {
    return context.invalid("a zero point of shape " + print_dims(zero.dims()) + " does not fit input of shape " +
                           print_dims(x.dims()));
  }
  return result;
}

/// SUMS as int32, wrapped around.
Outputs accumulators(const KernelContext& context, const Tensor& sums) {
  ATTN_OPT_TRY(Tensor out, context.allocate(onnx::TensorProto::INT32, sums.dims()));
  std::ranges::transform(sums.data<double>(), out.mutable_data<int32_t>().begin(),
                         [](double sum) { return static_cast<int32_t>(static_cast<uint32_t>(static_cast<int64_t>(sum))); });
  return single(std::move(out));
}

/// Where a quantized operator's operands stand among its inputs, each followed by its scale and zero point.
struct Operands {
  size_t a, b, y;          ///< y: of its scale
  int64_t a_axis, b_axis;  ///< of the result, that scales of more than one value lie along
};

Expected<Tensor> scale_of(const KernelContext& context, size_t i, int64_t axis, int64_t rank) {
  if (!is_floating(context.input(i).type())) return context.invalid("a scale is not floating");
  ATTN_OPT_TRY(const Tensor scale, context.input(i).cast(onnx::TensorProto::DOUBLE));
  return scale.size() == 1 ? scale.reshaped({}) : along(scale, axis, rank);
}

/// VALUES as TYPE, which is an 8-bit integer; those beyond it become its lowest and its highest.
Expected<Tensor> saturated(const KernelContext& context, const Tensor& values, DataType type) {
  ATTN_OPT_TRY(Tensor out, context.allocate(type, values.dims()));
  return dispatch(context, type, ByteTypes{}, [&]<class T>() -> Expected<Tensor> {
    std::ranges::transform(values.data<double>(), out.mutable_data<T>().begin(), [](double value) {
      // The lowest value for NaN.
      if (!(value > std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
      return static_cast<T>(std::min<double>(value, std::numeric_limits<T>::max()));
    });
    return std::move(out);
  });
}

/// saturate(round(sums * a_scale * b_scale / y_scale) + y_zero_point), ties rounded to even; floats are
/// rounded in the end only.
Outputs requantized(const KernelContext& context, const Tensor& sums, const Operands& at) {
  const int64_t rank = sums.rank();
  ATTN_OPT_TRY(const Tensor a_scale, scale_of(context, at.a + 1, at.a_axis, rank));
  ATTN_OPT_TRY(const Tensor b_scale, scale_of(context, at.b + 1, at.b_axis, rank));
  ATTN_OPT_TRY(const Tensor y_scale, scale_of(context, at.y, -1, rank));
  ATTN_OPT_TRY(Tensor scale, combined(context, a_scale, b_scale, std::multiplies<double>()));
  ATTN_OPT_TRY(scale, combined(context, scale, y_scale, std::divides<double>()));
  const Tensor& zero_point = context.input(at.y + 1);
  const bool rounds = !is_float8(zero_point.type());
  ATTN_OPT_TRY(Tensor y,
               combined(context, sums, scale, [&](double sum, double by) { return rounds ? std::rint(sum * by) : sum * by; }));
  ATTN_OPT_TRY(const Tensor zero, zero_point.cast(onnx::TensorProto::DOUBLE));
  ATTN_OPT_TRY(y, combined(context, y, zero.size() == 1 ? zero.reshaped({}) : zero, std::plus<double>()));
  if (y.dims() != sums.dims()) return context.invalid("scales or zero points do not fit the output");
  return single(rounds ? saturated(context, y, zero_point.type()) : y.cast(zero_point.type()));
}

Outputs conv_integer(const KernelContext& context) {
  ATTN_OPT_CHECK(check_types(context, {0, 1}, false));
  ATTN_OPT_TRY(const Tensor x, centred(context, 0, 2, -1));
  ATTN_OPT_TRY(const Tensor weights, centred(context, 1, 3, 0));
  ATTN_OPT_TRY(const Tensor sums, convolve(context, x, weights, {}));
  return accumulators(context, sums);
}

Outputs qlinear_conv(const KernelContext& context) {
  ATTN_OPT_CHECK(check_types(context, {0, 3, 7}, false));
  ATTN_OPT_TRY(const Tensor x, centred(context, 0, 2, -1));
  ATTN_OPT_TRY(const Tensor weights, centred(context, 3, 5, 0));
  Tensor bias;
  if (context.has(8)) {
    if (context.input(8).type() != onnx::TensorProto::INT32) return context.invalid("the bias is not int32");
    ATTN_OPT_TRY(bias, context.input(8).cast(onnx::TensorProto::DOUBLE));
    if (weights.rank() == 0 || bias.size() != weights.dims()[0]) {
      return context.invalid("the bias is not one value for each output channel");
    }
  }
  ATTN_OPT_TRY(const Tensor sums, convolve(context, x, weights, bias));
  return requantized(context, sums, {0, 3, 6, -1, 1});
}

/// The product of inputs A and B, whose zero points are given for rows of A and columns of B.
Expected<Tensor> centred_product(const KernelContext& context, size_t a, size_t a_zero, size_t b, size_t b_zero) {
  ATTN_OPT_TRY(const Tensor left, centred(context, a, a_zero, context.input(a).rank() - 2));
  ATTN_OPT_TRY(const Tensor right, centred(context, b, b_zero, context.input(b).rank() - 1));
  return matmul(context, left, right);
}

Outputs matmul_integer(const KernelContext& context) {
  ATTN_OPT_CHECK(check_types(context, {0, 1}, false));
  ATTN_OPT_TRY(const Tensor sums, centred_product(context, 0, 2, 1, 3));
  return accumulators(context, sums);
}

Outputs qlinear_matmul(const KernelContext& context) {
  ATTN_OPT_CHECK(check_types(context, {0, 3, 7}, true));
  ATTN_OPT_TRY(const Tensor sums, centred_product(context, 0, 2, 3, 5));
  return requantized(context, sums, {0, 3, 6, sums.rank() - 2, sums.rank() - 1});
}

}  // namespace

void register_integer_products(KernelRegistry& registry) {
  registry.add("ConvInteger", 10, 10, conv_integer);
  registry.add("MatMulInteger", 10, 10, matmul_integer);
  registry.add("QLinearConv", 10, 10, qlinear_conv);
  registry.add("QLinearMatMul", 10, 21, qlinear_matmul);
}

}  // namespace attn_opt
