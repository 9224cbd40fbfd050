#include "src/optimizer/node_checks.h"

#include <onnx/defs/schema.h>

#include <algorithm>

#include "src/graph/operator_name.h"

namespace attn_opt {
namespace {

/// The first input that NODE leaves out and SCHEMA requires; -1 if there is none.
int missing_input(const Node& node, const onnx::OpSchema& schema) {
  const auto& formal = schema.inputs();
  for (size_t i = 0; i < node.inputs.size() && !formal.empty(); ++i) {
    const auto& parameter = formal[std::min(i, formal.size() - 1)];
    if (!node.inputs[i] && parameter.GetOption() != onnx::OpSchema::Optional) return static_cast<int>(i);
  }
  return -1;
}

Status check_inputs(const Node& node, const ModelGraph& view) {
  if (std::ranges::find(node.inputs, nullptr) == node.inputs.end()) return {};
  const std::string domain(node.domain());
  const auto* schema = onnx::OpSchemaRegistry::Schema(node.op(), view.opset(*node.graph, domain), domain);
  const int missing = schema ? missing_input(node, *schema) : -1;
  if (missing < 0) return {};
  return fail(ErrorCode::kInvalidInput, node.label(), operator_name(node) + " has no input " + std::to_string(missing) + ", which it requires");
}

Status check_permutation(const Node& node) {
  const auto* perm = node.is("Transpose") ? node.ints_attribute("perm") : nullptr;
  if (!perm) return {};
  std::vector<bool> seen(static_cast<size_t>(perm->size()));
  for (const int64_t axis : *perm) {
    if (axis < 0 || axis >= perm->size() || seen[static_cast<size_t>(axis)])
      return fail(ErrorCode::kInvalidInput, node.label(), "the perm of a Transpose is no permutation");
    seen[static_cast<size_t>(axis)] = true;
  }
  return {};
}

}  // namespace

Status check_nodes(const ModelGraph& view) {
  for (const auto& graph : view.graphs())
    for (const Node* node : graph->nodes()) {
      ATTN_OPT_CHECK(check_inputs(*node, view));
      ATTN_OPT_CHECK(check_permutation(*node));
    }
  return {};
}

}  // namespace attn_opt
