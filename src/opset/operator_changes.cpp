#include "src/opset/operator_changes.h"

#include <algorithm>

#include "src/io/check/runtime_operators.h"
#include "src/opset/step_rules.h"

namespace attn_opt {
namespace {

bool has_rule(const std::string& op, const std::vector<SchemaStep>& steps) {
  return std::ranges::any_of(steps, [&](const auto& step) { return find_step_rule(op, step.version) != nullptr; });
}

}  // namespace

std::string since(int version) { return " since opset " + std::to_string(version); }

std::string no_such_operator(const std::string& op, int opset) {
  return "opset " + std::to_string(opset) + " has no operator " + op;
}

const SchemaChange* first_touching(const SchemaStep& step, const onnx::NodeProto& node, const TypeLookup& type_of) {
  const auto found = std::ranges::find_if(step.changes, [&](const auto& change) { return touches(change, node, type_of); });
  return found == step.changes.end() ? nullptr : &*found;
}

TypeLookup OperatorChanges::unknown_types() {
  return [](auto, int) { return onnx::TensorProto::UNDEFINED; };
}

bool OperatorChanges::never_changes(const std::string& op, int from) {
  const auto [slot, added] = never_changes_[from].try_emplace(op, false);
  if (!added) return slot->second;
  const auto* known = steps(op, from);
  if (known != nullptr && !has_rule(op, *known)) {
    slot->second = std::ranges::all_of(*known, [](const auto& step) { return step.changes.empty(); });
  }
  return slot->second;
}

std::optional<std::string> OperatorChanges::of_node(const onnx::NodeProto& node, int from, const TypeLookup& type_of) {
  if (never_changes(node.op_type(), from)) return std::nullopt;
  const auto* known = steps(node.op_type(), from);
  if (known == nullptr) return no_such_operator(node.op_type(), from);
  for (const SchemaStep& step : *known) {
    if (find_step_rule(node.op_type(), step.version)) return "it means something else" + since(step.version);
    if (const auto* change = first_touching(step, node, type_of)) return to_string(*change) + since(step.version);
  }
  return std::nullopt;
}

bool OperatorChanges::leave(const onnx::NodeProto& node, int from) {
  if (from > to_) return find_schema(node.op_type(), from, "") == find_schema(node.op_type(), to_, "");
  return !of_node(node, from);
}

}  // namespace attn_opt
