#include "src/io/deprecated_operators.h"

#include "attn_opt/model_walk.h"

namespace attn_opt {
namespace {

constexpr const char* kUncheckedDomain = "unchecked";

void import_unchecked(google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports) {
  auto& import = *imports.Add();
  import.set_domain(kUncheckedDomain);
  import.set_version(1);
}

}  // namespace

onnx::ModelProto without_deprecated_operators(const onnx::ModelProto& model) {
  onnx::ModelProto rest = model;
  import_unchecked(*rest.mutable_opset_import());
  for (auto& function : *rest.mutable_functions()) import_unchecked(*function.mutable_opset_import());
  for_each_node(rest, [](onnx::NodeProto& node) {
    if (node.op_type() == "GroupNormalization") node.set_domain(kUncheckedDomain);
  });
  return rest;
}

}  // namespace attn_opt
