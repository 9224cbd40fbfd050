#include "src/io/missing_shapes.h"

#include <algorithm>

namespace attn_opt {
namespace {

bool lacks_shape(const onnx::ValueInfoProto& value) {
  return value.type().has_tensor_type() && !value.type().tensor_type().has_shape();
}

}  // namespace

bool lacks_shapes(const onnx::ModelProto& model) {
  return std::ranges::any_of(model.graph().input(), lacks_shape) || std::ranges::any_of(model.graph().output(), lacks_shape);
}

void give_shapes(onnx::ModelProto& model) {
  for (auto* values : {model.mutable_graph()->mutable_input(), model.mutable_graph()->mutable_output()})
    for (auto& value : *values)
      if (lacks_shape(value)) value.mutable_type()->mutable_tensor_type()->mutable_shape();
}

}  // namespace attn_opt
