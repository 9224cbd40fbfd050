#include "src/io/check/runtime_operators.h"

#include <algorithm>
#include <climits>
#include <unordered_set>

#include "attn_opt/internal/model_walk.h"
#include "src/io/check/onnx_schemas.h"
#include "src/io/check/runtime_schemas.h"
#include "src/io/onnx_domain.h"

namespace attn_opt {
namespace {

constexpr const char* kUncheckedDomain = "unchecked";

using Imports = google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>;
using Names = std::unordered_set<std::string>;

/// 0 if there is none.
int onnx_version(const Imports& imports) {
  const auto found = std::ranges::find_if(imports, [](const auto& import) { return is_onnx(import.domain()); });
  return found == imports.end() ? 0 : static_cast<int>(std::min<int64_t>(found->version(), INT_MAX));
}

bool is_deprecated_at_once(const std::string& op, int opset) { return op == "GroupNormalization" && opset < 21; }

/// True if runtimes have the operator of NODE, which is of ONNX's domain and OPSET, and ONNX has not.
bool is_of_runtimes(const onnx::NodeProto& node, int opset) {
  if (!is_onnx(node.domain())) return false;
  if (is_deprecated_at_once(node.op_type(), opset)) return true;
  return runtime_schema(node.op_type()) != nullptr && onnx_schema(node.op_type(), opset, "") == nullptr;
}

/// The least opset of ONNX in MODEL, at which it lacks the most operators.
int least_opset(const onnx::ModelProto& model) {
  int least = onnx_version(model.opset_import());
  for (const auto& function : model.functions()) {
    const int opset = onnx_version(function.opset_import());
    if (opset > 0) least = std::min(least, opset);
  }
  return least;
}

bool may_use_runtime_operators(const onnx::ModelProto& model) {
  const int opset = least_opset(model);
  bool found = false;
  for_each_node(model, [&](const onnx::NodeProto& node) { found = found || is_of_runtimes(node, opset); });
  return found;
}

/// Functions of the model in the domain of ONNX, whose calls are no nodes of runtimes.
Names own_operators(const onnx::ModelProto& model) {
  Names names;
  for (const auto& function : model.functions())
    if (is_onnx(function.domain())) names.insert(function.name());
  return names;
}

void import_unchecked(Imports& imports) {
  auto& import = *imports.Add();
  import.set_domain(kUncheckedDomain);
  import.set_version(1);
}

/// Moves the nodes of BODY, a model without functions or a function, out of the checker's sight.
template <class Body>
bool move_runtime_operators(Body& body, const Names& own) {
  const int opset = onnx_version(body.opset_import());
  bool moved = false;
  for_each_node(body, [&](onnx::NodeProto& node) {
    if (opset == 0 || own.contains(node.op_type()) || !is_of_runtimes(node, opset)) return;
    if (const auto* schema = runtime_schema(node.op_type())) schema->Verify(node);
    node.set_domain(kUncheckedDomain);
    moved = true;
  });
  if (moved) import_unchecked(*body.mutable_opset_import());
  return moved;
}

}  // namespace

const onnx::OpSchema* find_schema(const std::string& op, int opset, const std::string& domain) {
  const auto* schema = onnx_schema(op, opset, domain);
  return schema == nullptr && domain.empty() ? runtime_schema(op) : schema;
}

bool may_be_an_operator(const std::string& domain, const std::string& name) {
  return domain == "com.microsoft" || find_schema(name, INT_MAX, is_onnx(domain) ? "" : domain) != nullptr;
}

std::optional<onnx::ModelProto> without_runtime_operators(const onnx::ModelProto& model) {
  if (!may_use_runtime_operators(model)) return std::nullopt;
  onnx::ModelProto rest = model;
  const Names own = own_operators(model);
  auto functions = std::move(*rest.mutable_functions());
  rest.clear_functions();
  bool moved = move_runtime_operators(rest, own);
  for (auto& function : functions) moved |= move_runtime_operators(function, own);
  *rest.mutable_functions() = std::move(functions);
  return moved ? std::optional(std::move(rest)) : std::nullopt;
}

}  // namespace attn_opt
