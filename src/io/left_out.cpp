#include "src/io/left_out.h"

#include <algorithm>

namespace attn_opt {
namespace {

constexpr const char* kContribDomain = "com.microsoft";

bool lacks_shape(const onnx::ValueInfoProto& value) {
  return value.type().has_tensor_type() && !value.type().tensor_type().has_shape();
}

bool imports_contrib(const onnx::ModelProto& model) {
  return std::ranges::any_of(model.opset_import(), [](const auto& import) { return import.domain() == kContribDomain; });
}

}  // namespace

bool leaves_out(const onnx::ModelProto& model) {
  return !imports_contrib(model) || std::ranges::any_of(model.graph().input(), lacks_shape) ||
         std::ranges::any_of(model.graph().output(), lacks_shape);
}

void complete_imports(onnx::ModelProto& model) {
  if (imports_contrib(model)) return;
  auto* import = model.add_opset_import();
  import->set_domain(kContribDomain);
  import->set_version(1);
}

void complete(onnx::ModelProto& model) {
  complete_imports(model);
  for (auto* values : {model.mutable_graph()->mutable_input(), model.mutable_graph()->mutable_output()})
    for (auto& value : *values)
      if (lacks_shape(value)) value.mutable_type()->mutable_tensor_type()->mutable_shape();
}

}  // namespace attn_opt
