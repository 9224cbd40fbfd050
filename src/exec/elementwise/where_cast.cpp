// Where, Cast, CastLike, BitCast.
#include "src/exec/dispatch.h"
#include "src/exec/elementwise/broadcast.h"
#include "src/exec/families.h"
#include "src/io/tensor_bytes.h"

namespace attn_opt {
namespace {

Outputs where(const KernelContext& context) {
  const Tensor& condition = context.input(0);
  const Tensor& x = context.input(1);
  const Tensor& y = context.input(2);
  if (condition.type() != onnx::TensorProto::BOOL) {
    return context.invalid("the condition is not a bool tensor");
  }
  ATTN_OPT_CHECK(context.same_type(x, y));
  ATTN_OPT_TRY(const Dims values, broadcast_dims(context, x.dims(), y.dims()));
  ATTN_OPT_TRY(Dims dims, broadcast_dims(context, condition.dims(), values));
  ATTN_OPT_TRY(Tensor out, context.allocate(x.type(), dims));
  const StridedLoop<3> loop(
      dims, {broadcast_strides(condition.dims(), dims), broadcast_strides(x.dims(), dims), broadcast_strides(y.dims(), dims)});
  const bool* chosen = condition.data<bool>().data();
  return single(dispatch_cells(context, x.type(), [&]<class T>() -> Expected<Tensor> {
    const T* x_data = cells<T>(x);
    const T* y_data = cells<T>(y);
    T* to = mutable_cells<T>(out);
    loop.elements([&](const std::array<int64_t, 3>& at) { *to++ = chosen[at[0]] ? x_data[at[1]] : y_data[at[2]]; });
    return std::move(out);
  }));
}

Expected<CastRules> rules_of(const KernelContext& context) {
  using Rounding = CastRules::ExponentRounding;
  CastRules rules;
  rules.saturate = context.attribute_int("saturate", 1) != 0;
  const std::string rounding = context.attribute_string("round_mode", "up");
  if (rounding == "down") rules.exponent_rounding = Rounding::kDown;
  if (rounding == "nearest") rules.exponent_rounding = Rounding::kNearest;
  if (rounding == "up" || rules.exponent_rounding != Rounding::kUp) return rules;
  return context.invalid("round_mode is " + rounding + ", not up, down or nearest");
}

Outputs cast_tensor(const KernelContext& context, const Tensor& tensor, DataType to) {
  ATTN_OPT_TRY(const CastRules rules, rules_of(context));
  auto result = tensor.cast(to, rules);
  if (!result) {
    result.error().where = describe(context.node);
    if (result.error().code == ErrorCode::kUnsupported) {
      result.error().what = "unsupported: " + result.error().what;
    }
  }
  return single(std::move(result));
}

Outputs cast(const KernelContext& context) {
  const auto* to = context.attribute("to");
  if (to == nullptr) return context.invalid("attribute to is missing");
  auto type = static_cast<DataType>(to->i());
  if (context.version < 6) onnx::TensorProto_DataType_Parse(to->s(), &type);
  return cast_tensor(context, context.input(0), type);
}

Outputs cast_like(const KernelContext& context) { return cast_tensor(context, context.input(0), context.input(1).type()); }

Outputs bit_cast(const KernelContext& context) {
  const auto to = static_cast<DataType>(context.attribute_int("to", onnx::TensorProto::UNDEFINED));
  Tensor x = context.input(0);
  if (element_size(to) == 0 || element_size(x.type()) == 0) {
    return context.unsupported(type_name(x.type()) + " as " + type_name(to));
  }
  // A float that is computed in double: no double of the model's own could become so small a type.
  if (x.type() == onnx::TensorProto::DOUBLE && element_size(to) == sizeof(float)) {
    ATTN_OPT_TRY(x, x.cast(onnx::TensorProto::FLOAT));
  }
  if (bits_per_element(x.type()) != bits_per_element(to)) {
    return context.invalid(type_name(x.type()) + " and " + type_name(to) + " differ in width");
  }
  if (to == onnx::TensorProto::BOOL) return single(x.cast(to));
  ATTN_OPT_TRY(Tensor out, context.allocate(to, x.dims()));
  std::ranges::copy(x.bytes(), out.mutable_bytes().begin());
  return single(std::move(out));
}

}  // namespace

void register_where_cast(KernelRegistry& registry) {
  registry.add("Where", 9, 16, where);
  registry.add("Cast", 1, 28, cast);
  registry.add("CastLike", 15, 25, cast_like);
  registry.add("BitCast", 26, 26, bit_cast);
}

}  // namespace attn_opt
