#include "src/opset/model_versions.h"

#include <algorithm>
#include <unordered_set>

#include "attn_opt/model.h"
#include "src/graph/operator_name.h"
#include "src/io/ir_version.h"

namespace attn_opt {
namespace {

using Imports = google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>;

/// True if there was something to raise.
bool raise(Imports& imports, int opset) {
  bool raised = false;
  for (auto& import : imports) {
    if (!is_onnx(import.domain()) || import.version() >= opset) continue;
    import.set_version(opset);
    raised = true;
  }
  return raised;
}

bool imports_onnx(const Imports& imports) {
  return std::ranges::any_of(imports, [](const auto& import) { return is_onnx(import.domain()); });
}

/// Before IR version 4 an initializer had to be listed as an input too and was a constant all the same; from
/// then on such an input could be overridden.
void make_initializers_constant(ModelGraph& view) {
  onnx::GraphProto& graph = *view.proto().mutable_graph();
  std::unordered_set<std::string> initialized;
  for (const auto& tensor : graph.initializer()) initialized.insert(tensor.name());
  auto& inputs = *graph.mutable_input();
  for (auto input = inputs.begin(); input != inputs.end();) {
    if (!initialized.contains(input->name())) {
      ++input;
      continue;
    }
    if (Value* value = view.main().find(input->name())) {
      value->is_input = false;
      value->declared_type = nullptr;
    }
    input = inputs.erase(input);
  }
}

}  // namespace

void set_versions(ModelGraph& view, int opset) {
  onnx::ModelProto& model = view.proto();
  if (!imports_onnx(model.opset_import())) model.add_opset_import();
  bool raised = raise(*model.mutable_opset_import(), opset);
  for (auto& function : *model.mutable_functions()) raised |= raise(*function.mutable_opset_import(), opset);
  const int64_t ir_version = ir_version_of(opset);
  if (!raised || model.ir_version() >= ir_version) return;
  if (model.ir_version() < 4) make_initializers_constant(view);
  model.set_ir_version(ir_version);
}

}  // namespace attn_opt
