// If, what a Loop carries, and calls of model-local functions.
#include <algorithm>

#include "src/match/node_forms.h"
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

/// Output OUTPUT collects what each iteration makes as MADE along AXIS, which has the size COUNT: all have the same shape, or
/// the node fails.
void set_collected(RuleContext& context, size_t output, const Value* made, int64_t axis, const Dim& count) {
  if (!made || !context.wants(output)) return;
  const ValueFact& each = context.store().computed(*made);
  context.set_type(output, each.type);
  if (!each.shape) return;
  Shape shape = *each.shape;
  const auto at = axis_in(axis, shape.size() + 1);
  if (!at) return;
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(*at), count);
  context.set_shape(output, std::move(shape));
}

bool is_scan(const Node& node) {
  constexpr int kFirstWithoutBatch = 9;  // the opset
  return node.is("Scan") && node.bodies.size() == 1 && node.graph->model().onnx_opset(node) >= kFirstWithoutBatch;
}

/// The Scan of whose body VALUE is an input; null if there is none.
const Node* scan_of(const Value& value) {
  const Node* owner = value.is_input ? value.graph->owner() : nullptr;
  return owner && is_scan(*owner) ? owner : nullptr;
}

/// At most as many as the body has inputs.
size_t count_of_states(const Node& scan) {
  const int64_t inputs = std::ssize(scan.bodies[0]->inputs());
  return static_cast<size_t>(inputs - std::clamp<int64_t>(scan.int_attribute("num_scan_inputs", 0), 0, inputs));
}

/// Number INDEX of the AXES of a Scan.
int64_t axis_of(const Node& scan, std::string_view axes, size_t index) {
  const auto* given = scan.ints_attribute(axes);
  return given && index < static_cast<size_t>(given->size()) ? given->Get(static_cast<int>(index)) : 0;
}

/// How many pieces a Scan of STATES states cuts its inputs into; nullopt if it is not known.
std::optional<Dim> count_of_pieces(const RuleContext& context, size_t states) {
  const MaybeShape whole = context.shape(states);
  const auto at = whole ? axis_in(axis_of(context.node(), "scan_input_axes", 0), whole->size()) : std::nullopt;
  return at ? std::optional((*whole)[*at]) : std::nullopt;
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
  if (!value.is_input) return nullptr;
  const Node* owner = value.graph->owner();
  if (!owner || !owner->is("Loop")) return nullptr;
  const auto at = place_among_inputs(value);
  return at >= kFirstCarried ? owner->input(at) : nullptr;
}

const Value* same_in_all_iterations(FactStore& store, const Value& value) {
  const Value* initial = initial_of_carried(value);
  return initial && store.loop_copies().hands_on(value, store.computed(*initial)) ? initial : nullptr;
}

const Value* handed_on_by(FactStore& store, const Node& node, size_t output) {
  if (!node.is("Loop") || node.bodies.size() != 1) return nullptr;
  const auto& inputs = node.bodies[0]->inputs();
  const size_t at = output + kFirstCarried;
  return at < inputs.size() ? same_in_all_iterations(store, *inputs[at]) : nullptr;
}

void apply_loop_rule(RuleContext& context) {
  const Node& node = context.node();
  if (!node.is("Loop") || node.bodies.size() != 1) return;
  FactStore& store = context.store();
  const Graph& body = *node.bodies[0];
  const CarriedShapes& carried = store.carried_by(node);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const size_t inner = i + kFirstCarried;
    if (!node.outputs[i]) continue;
    if (inner >= body.inputs().size()) {
      if (i + 1 < body.outputs().size()) set_collected(context, i, body.outputs()[i + 1], 0, context.fresh(i, 0));
    } else if (const Value* initial = handed_on_by(store, node, i)) {
      context.set_same(i, *initial);
    } else if (const Value* first = node.input(inner)) {
      const ValueFact& own = store.computed(*first);
      ValueFact later;
      later.type = own.type;
      if (inner < carried.size()) later.shape = carried[inner];
      set_common(context, i, own, later);
    }
  }
}

const Value* initial_of_state(const Value& value) {
  const Node* scan = scan_of(value);
  if (!scan) return nullptr;
  const size_t at = place_among_inputs(value);
  return at < count_of_states(*scan) ? scan->input(at) : nullptr;
}

Scanned scanned_by(const Value& value) {
  const Node* scan = scan_of(value);
  if (!scan) return {};
  const size_t at = place_among_inputs(value), states = count_of_states(*scan);
  return at < states ? Scanned() : Scanned{scan->input(at), axis_of(*scan, "scan_input_axes", at - states)};
}

void apply_scan_rule(RuleContext& context) {
  const Node& node = context.node();
  if (!is_scan(node)) return;
  const Graph& body = *node.bodies[0];
  const size_t states = count_of_states(node);
  const std::optional<Dim> count = count_of_pieces(context, states);
  for (size_t i = 0; i < std::min(node.outputs.size(), body.outputs().size()); ++i) {
    if (i >= states) {
      set_collected(context, i, body.outputs()[i], axis_of(node, "scan_output_axes", i - states),
                    count ? *count : context.fresh(i, 0));
    } else if (node.outputs[i] && node.input(i)) {
      const ValueFact& first = context.store().computed(*node.inputs[i]);
      context.set_type(i, first.type);
      if (first.shape) context.set_shape(i, *first.shape);
    }
  }
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
