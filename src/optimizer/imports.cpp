#include "src/optimizer/imports.h"

#include <algorithm>

#include "src/io/left_out.h"

namespace attn_opt {
namespace {

bool has_operator_of(const OperatorCounts& counts, const std::string& domain) {
  const std::string prefix = domain + "::";
  const auto first = counts.lower_bound(prefix);
  return first != counts.end() && first->first.starts_with(prefix);
}

bool is_of_functions(const onnx::ModelProto& model, const std::string& domain) {
  return std::ranges::any_of(model.functions(), [&domain](const onnx::FunctionProto& function) {
    return function.domain() == domain ||
           std::ranges::any_of(function.opset_import(), [&domain](const auto& import) { return import.domain() == domain; });
  });
}

}  // namespace

void update_imports(const OperatorCounts& before, const OperatorCounts& after, onnx::ModelProto& model) {
  auto& imports = *model.mutable_opset_import();
  for (int i = imports.size(); i-- > 0;) {
    const std::string& domain = imports[i].domain();
    if (has_operator_of(before, domain) && !has_operator_of(after, domain) && !is_of_functions(model, domain))
      imports.DeleteSubrange(i, 1);
  }
  if (has_operator_of(after, "com.microsoft")) complete_imports(model);
}

}  // namespace attn_opt
