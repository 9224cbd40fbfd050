#include "src/rewrite/value_types.h"

#include <onnx/shape_inference/implementation.h>

#include <exception>

#include "src/io/one_line.h"

namespace attn_opt {

onnx::TypeProto tensor_type(DataType type) {
  onnx::TypeProto made;
  made.mutable_tensor_type()->set_elem_type(type);
  return made;
}

onnx::TypeProto tensor_type(DataType type, const AxisSizes& sizes) {
  onnx::TypeProto made = tensor_type(type);
  auto& shape = *made.mutable_tensor_type()->mutable_shape();
  for (const AxisSize& size : sizes) {
    auto& dim = *shape.add_dim();
    if (const auto* number = std::get_if<int64_t>(&size))
      dim.set_dim_value(*number);
    else if (const auto& symbol = std::get<std::string>(size); !symbol.empty())
      dim.set_dim_param(symbol);
  }
  return made;
}

DataType GraphBuilder::type(const Value& value) {
  if (!value.declared_type || !value.declared_type->has_tensor_type()) return onnx::TensorProto::UNDEFINED;
  return static_cast<DataType>(value.declared_type->tensor_type().elem_type());
}

std::optional<AxisSizes> GraphBuilder::sizes(const Value& value) {
  if (!value.declared_type || !value.declared_type->tensor_type().has_shape()) return std::nullopt;
  AxisSizes sizes;
  for (const auto& dim : value.declared_type->tensor_type().shape().dim())
    sizes.push_back(dim.has_dim_value() ? AxisSize(dim.dim_value()) : AxisSize(dim.dim_param()));
  return sizes;
}

std::string type_text(const Value& value) {
  const DataType type = GraphBuilder::type(value);
  if (type == onnx::TensorProto::UNDEFINED) return value.declared_type ? "no tensor" : "of unknown type";
  const auto sizes = GraphBuilder::sizes(value);
  if (!sizes) return type_name(type);
  std::string text;
  for (const AxisSize& size : *sizes) {
    const auto* number = std::get_if<int64_t>(&size);
    const std::string one = number ? std::to_string(*number) : std::get<std::string>(size);
    text += (text.empty() ? "" : ", ") + (one.empty() ? "?" : one);
  }
  return type_name(type) + "[" + text + "]";
}

Status merge_types(const onnx::TypeProto& inferred, onnx::TypeProto& declared) {
  try {
    onnx::shape_inference::checkShapesAndTypes(inferred, declared);
    onnx::shape_inference::mergeShapesAndTypes(inferred, &declared);
    return {};
  } catch (const std::exception& error) {
    return fail(ErrorCode::kUsage, {}, one_line(error.what()));
  }
}

}  // namespace attn_opt
