// If, what a Loop carries, and calls of model-local functions.
#include <algorithm>

#include "src/match/shape_rules/shape_rule.h"

namespace attn_opt {
namespace {

const Graph* branch_called(const Node& node, std::string_view name) {
  const onnx::AttributeProto* attribute = node.attribute(name);
  for (const Graph* body : node.bodies) {
    if (attribute && body->proto() == &attribute->g()) return body;
  }
  return nullptr;
}

void set_common(RuleContext& context, size_t output, const ValueFact& one, const ValueFact& other) {
  if (one.type == other.type) context.set_type(output, one.type);
  if (!one.shape || !other.shape || one.shape->size() != other.shape->size()) return;
  Shape shape = *one.shape;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (!(shape[axis] == (*other.shape)[axis])) shape[axis] = context.fresh(output, axis);
  }
  context.set_shape(output, std::move(shape));
}

}  // namespace

const Graph* selected_branch(FactStore& store, const Node& node) {
  if (!node.is("If") || !node.input(0)) return nullptr;
  const ValueFact& condition = store.computed(*node.inputs[0]);
  if (!condition.integers || condition.integers->values.size() != 1) return nullptr;
  const Dim& value = condition.integers->values[0];
  if (!value.is_constant()) return nullptr;
  return branch_called(node, value.is(0) ? "else_branch" : "then_branch");
}

const Value* initial_of_carried(const Value& value) {
  constexpr std::ptrdiff_t kFirstCarried = 2;
  if (!value.is_input) return nullptr;
  const Node* owner = value.graph->owner();
  if (!owner || !owner->is("Loop")) return nullptr;
  const auto& inputs = value.graph->inputs();
  const auto at = std::ranges::find(inputs, &value) - inputs.begin();
  return at >= kFirstCarried ? owner->input(static_cast<size_t>(at)) : nullptr;
}

const Value* same_in_all_iterations(FactStore& store, const Value& value) {
  const Value* initial = initial_of_carried(value);
  return initial && store.loop_copies().hands_on(value, store.computed(*initial)) ? initial : nullptr;
}

const Value* handed_on_by(FactStore& store, const Node& node, size_t output) {
  if (!node.is("Loop") || node.bodies.size() != 1) return nullptr;
  const auto& inputs = node.bodies[0]->inputs();
  return output + 2 < inputs.size() ? same_in_all_iterations(store, *inputs[output + 2]) : nullptr;
}

void apply_loop_rule(RuleContext& context) {
  const Node& node = context.node();
  if (!node.is("Loop")) return;
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (const Value* initial = node.outputs[i] ? handed_on_by(context.store(), node, i) : nullptr)
      context.set_same(i, *initial);
}

Scanned scanned_by(const Value& value) {
  constexpr int kFirstWithoutBatch = 9;  // the opset
  const Node* owner = value.is_input ? value.graph->owner() : nullptr;
  if (!owner || !owner->is("Scan") || value.graph->model().onnx_opset(*owner) < kFirstWithoutBatch) return {};
  const auto& inputs = value.graph->inputs();
  const auto at = std::ranges::find(inputs, &value) - inputs.begin();
  const auto first = std::ssize(inputs) - owner->int_attribute("num_scan_inputs", 0);
  const Value* whole = at >= first ? owner->input(static_cast<size_t>(at)) : nullptr;
  const auto* axes = owner->ints_attribute("scan_input_axes");
  return {whole, axes && at - first < axes->size() ? axes->Get(static_cast<int>(at - first)) : 0};
}

void apply_if_rule(RuleContext& context) {
  const Node& node = context.node();
  if (!node.is("If")) return;
  FactStore& store = context.store();
  const Graph* selected = selected_branch(store, node);
  const Graph* then_branch = branch_called(node, "then_branch");
  const Graph* else_branch = branch_called(node, "else_branch");
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const auto output_of = [&](const Graph* branch) -> const Value* {
      return branch && i < branch->outputs().size() ? branch->outputs()[i] : nullptr;
    };
    if (const Value* value = output_of(selected)) {
      context.set_same(i, *value);
      continue;
    }
    const Value* one = output_of(then_branch);
    const Value* other = output_of(else_branch);
    if (one && other) set_common(context, i, store.computed(*one), store.computed(*other));
  }
}

bool apply_function_rule(RuleContext& context) {
  FactStore& store = context.store();
  const Graph* body = store.function_called(context.node());
  if (!body) return false;
  store.infer_call(context, *body);
  return true;
}

}  // namespace attn_opt
