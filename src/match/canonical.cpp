#include "attn_opt/canonical.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace attn_opt {
namespace {

/// Nodes that are looked at for one that undoes what others did.
constexpr int kMaxRoundTrip = 8;
/// Round trips within round trips.
constexpr int kMaxNesting = 2;

Value& seen_through(Value& value, Facts& facts, int nesting);

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

/// True if NODE's input number NUMBER is the number that leaves the other operand as it is.
bool is_neutral(const Node& node, size_t number, Facts& facts) {
  const bool adds = node.is("Add") || (node.is("Sub") && number == 1);
  const bool multiplies = node.is("Mul") || (node.is("Div") && number == 1);
  if (node.inputs.size() != 2 || !node.inputs[0] || !node.inputs[1] || !(adds || multiplies)) return false;
  return facts.uniform(*node.inputs[number]) == (adds ? 0.0 : 1.0) &&
         same_shape(*node.inputs[1 - number], *node.outputs[0], facts);
}

bool is_regrouping(const Node& node) {
  return node.is("Reshape") || node.is("Squeeze") || node.is("Unsqueeze") || node.is("Flatten");
}

/// True if every number of type FROM is one of type TO.
bool holds(DataType to, DataType from) {
  using P = onnx::TensorProto;
  if (from == P::BOOL) return to == P::FLOAT || to == P::DOUBLE || to == P::FLOAT16 || to == P::INT32 || to == P::INT64;
  if (from == P::INT32) return to == P::INT64 || to == P::DOUBLE;
  if (from == P::FLOAT16 || from == P::BFLOAT16) return to == P::FLOAT || to == P::DOUBLE;
  return from == P::FLOAT && to == P::DOUBLE;
}

/// VALUE, or what single nodes that change nothing made it of.
Value& source_of(Value& value, Facts& facts) {
  Value* seen = &value;
  while (seen->producer && seen->output == 0) {
    const Node& node = *seen->producer;
    if (is_no_op(node, facts)) seen = node.inputs[0];
    else if (node.domain().empty() && is_neutral(node, 0, facts)) seen = node.inputs[1];
    else break;
  }
  return *seen;
}

/// What a chain of nodes that TAKES makes of a value, up from the last, until IS_BACK says of a value that VALUE repeats it.
template <class Takes, class IsBack>
Value* before_chain(Value& value, Facts& facts, int nesting, Takes takes, IsBack is_back) {
  Value* seen = &value;
  for (int step = 0; step < kMaxRoundTrip; ++step) {
    Node* node = seen->producer;
    if (!node || seen->output != 0 || !node->domain().empty() || node->inputs.empty() || !node->inputs[0] || !takes(*node))
      return nullptr;
    seen = &seen_through(*node->inputs[0], facts, nesting + 1);
    if (is_back(*seen)) return seen;
  }
  return nullptr;
}

/// Transposes that together exchange nothing.
Value* before_transposes(Value& value, Facts& facts, int nesting) {
  std::vector<int64_t> axes;
  const auto permutes = [&axes](const Node& node) {
    const auto* perm = node.is("Transpose") ? node.ints_attribute("perm") : nullptr;
    if (!perm || (!axes.empty() && axes.size() != static_cast<size_t>(perm->size()))) return false;
    if (axes.empty()) {
      axes.resize(static_cast<size_t>(perm->size()));
      std::iota(axes.begin(), axes.end(), 0);
    }
    for (int64_t& axis : axes) {
      if (axis < 0 || axis >= perm->size()) return false;
      axis = perm->Get(static_cast<int>(axis));
    }
    return true;
  };
  return before_chain(value, facts, nesting, permutes, [&axes](const Value&) { return std::is_sorted(axes.begin(), axes.end()); });
}

/// What VALUE is a copy of by several nodes of which the last undo what the first did; null if it is none.
Value* before_round_trip(Value& value, Facts& facts, int nesting) {
  if (!value.producer || value.output != 0 || nesting > kMaxNesting) return nullptr;
  const Node& last = *value.producer;
  const auto is_not = [](const Node& node) { return node.is("Not"); };
  const auto in_pairs = [calls = 0](const Value&) mutable { return ++calls % 2 == 0; };
  if (last.is("Transpose")) return before_transposes(value, facts, nesting);
  if (last.is("Not")) return before_chain(value, facts, nesting, is_not, in_pairs);
  if (is_regrouping(last))
    return before_chain(value, facts, nesting, is_regrouping,
                        [&](const Value& before) { return same_shape(before, value, facts); });
  if (!last.is("Cast")) return nullptr;
  const DataType type = facts.type(value);
  const auto widens = [&](const Node& node) {
    return node.is("Cast") && (node.outputs[0] == &value || holds(facts.type(*node.outputs[0]), type));
  };
  return before_chain(value, facts, nesting, widens, [&](const Value& before) { return facts.type(before) == type; });
}

Value& seen_through(Value& value, Facts& facts, int nesting) {
  Value* seen = &source_of(value, facts);
  while (Value* before = before_round_trip(*seen, facts, nesting)) seen = &source_of(*before, facts);
  return *seen;
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
  if (op == "Add" || op == "Sub" || op == "Mul" || op == "Div") return is_neutral(node, 1, facts);
  if (op == "Slice") return steps_are_one(node, facts) && same_shape(*node.inputs[0], *node.outputs[0], facts);
  if (op == "Reshape" || op == "Expand" || op == "Tile" || op == "Squeeze" || op == "Unsqueeze" || op == "Flatten")
    return same_shape(*node.inputs[0], *node.outputs[0], facts);
  return false;
}

Value& canonical(Value& value, Facts& facts) { return seen_through(value, facts, 0); }

}  // namespace attn_opt
