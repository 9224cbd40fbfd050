#include "src/opset/model_versions.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "attn_opt/model.h"
#include "src/graph/operator_name.h"

namespace attn_opt {
namespace {

using Imports = google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>;

/// The IR version that ONNX released together with OPSET (onnx.helper.VERSION_TABLE).
int64_t ir_version_of(int opset) {
  constexpr struct {
    int opset;
    int64_t ir_version;
  } kReleases[] = {{8, 3}, {9, 4}, {10, 5}, {11, 6}, {14, 7}, {18, 8}, {20, 9}, {22, 10}, {23, 11}, {24, 12}, {27, 13}};
  const auto* release = std::ranges::find_if(kReleases, [opset](const auto& one) { return opset <= one.opset; });
  return release == std::end(kReleases) ? 14 : release->ir_version;
}

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
