#include "src/optimizer/imports.h"

#include "attn_opt/model_walk.h"
#include "src/graph/operator_name.h"

namespace attn_opt {

std::set<std::string> used_domains(const onnx::ModelProto& model) {
  std::set<std::string> domains;
  const auto add = [&domains](const std::string& domain) {
    if (!is_onnx(domain)) domains.insert(domain);
  };
  for_each_node(model, [&](const onnx::NodeProto& node) { add(node.domain()); });
  for (const auto& function : model.functions()) {
    add(function.domain());
    for (const auto& import : function.opset_import()) add(import.domain());
  }
  return domains;
}

void drop_imports(const std::set<std::string>& used_before, onnx::ModelProto& model) {
  const std::set<std::string> used = used_domains(model);
  auto& imports = *model.mutable_opset_import();
  for (int i = imports.size(); i-- > 0;) {
    const std::string& domain = imports[i].domain();
    if (used_before.contains(domain) && !used.contains(domain)) imports.DeleteSubrange(i, 1);
  }
}

}  // namespace attn_opt
