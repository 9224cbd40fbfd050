#include "attn_opt/canonical.h"

#include <algorithm>

namespace attn_opt {
namespace {

bool same_shape(const Value& one, const Value& other, Facts& facts) {
  const Shape* a = facts.shape(one);
  const Shape* b = facts.shape(other);
  return a && b && *a == *b;
}

bool keeps_type(const Node& node, Facts& facts) {
  const DataType type = facts.type(*node.inputs[0]);
  return type != onnx::TensorProto::UNDEFINED && type == facts.type(*node.outputs[0]);
}

/// True unless NODE, a Slice, may run backwards or skip.
bool steps_are_one(const Node& node, Facts& facts) {
  const Value* steps = node.input(4);
  return !steps || facts.uniform(*steps) == 1.0;
}

/// True if NODE, a Pad, is known to add nothing anywhere.
bool pads_nothing(const Node& node, Facts& facts) {
  if (node.graph->model().onnx_opset(node) < 11 || !node.input(1)) return false;
  const IntegerData* pads = facts.integers(*node.inputs[1]);
  return pads && !pads->values.empty() &&
         std::all_of(pads->values.begin(), pads->values.end(), [](const Dim& count) { return count.is(0); });
}

bool transposes_nothing(const Node& node) {
  const auto* perm = node.ints_attribute("perm");
  if (!perm) return false;
  for (int i = 0; i < perm->size(); ++i)
    if (perm->Get(i) != i) return false;
  return true;
}

bool drops_nothing(const Node& node, Facts& facts) {
  const int opset = node.graph->model().onnx_opset(node);
  if (opset < 7) return node.int_attribute("is_test", 0) != 0;
  const Value* training = node.input(2);
  return !training || facts.uniform(*training) == 0.0;
}

}  // namespace

bool is_no_op(const Node& node, Facts& facts) {
  if (!node.domain().empty() || node.inputs.empty() || !node.inputs[0] || node.outputs.empty() || !node.outputs[0])
    return false;
  const std::string& op = node.op();
  if (op == "Identity") return true;
  if (op == "Cast" || op == "CastLike") return keeps_type(node, facts);
  if (op == "Dropout") return drops_nothing(node, facts);
  if (op == "Pad") return pads_nothing(node, facts);
  if (op == "Concat" || op == "Sum") return node.inputs.size() == 1;
  if (op == "Transpose") return transposes_nothing(node);
  if (op == "Slice") return steps_are_one(node, facts) && same_shape(*node.inputs[0], *node.outputs[0], facts);
  if (op == "Reshape" || op == "Expand" || op == "Tile" || op == "Squeeze" || op == "Unsqueeze" || op == "Flatten")
    return same_shape(*node.inputs[0], *node.outputs[0], facts);
  return false;
}

Value& canonical(Value& value, Facts& facts) {
  Value* seen = &value;
  while (seen->producer && seen->output == 0 && is_no_op(*seen->producer, facts)) seen = seen->producer->inputs[0];
  return *seen;
}

}  // namespace attn_opt
