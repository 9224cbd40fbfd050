#include "src/match/no_ops.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "src/match/operator_map.h"
#include "src/match/shape_rules/reduced_axis.h"

namespace attn_opt {
namespace {

bool keeps_type(const Node& node, Facts& facts) {
  const DataType type = facts.type(*node.inputs[0]);
  return type != onnx::TensorProto::UNDEFINED && type == facts.type(*node.outputs[0]);
}

/// True unless NODE, a Slice, may run backwards or skip.
bool steps_are_one(const Node& node, Facts& facts) {
  const Value* steps = node.input(4);
  return !steps || facts.uniform(*steps) == 1.0;
}

/// True if NODE, a Pad, adds nothing anywhere.
bool pads_nothing(const Node& node, Facts& facts) {
  if (node.graph->model().onnx_opset(node) < 11 || !node.input(1)) return false;
  const IntegerData* pads = facts.integers(*node.inputs[1]);
  return pads && !pads->values.empty() && std::ranges::all_of(pads->values, [](const Dim& count) { return count.is(0); });
}

bool transposes_nothing(const Node& node, Facts&) {
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
  return !training || facts.uniform(*training) == 0.0 || (node.input(1) && facts.uniform(*node.input(1)) == 0.0);
}

/// By operator of two operands: the number that leaves the second as it is where the first holds it, and the other way round;
/// nullopt where none does.
using NeutralNumbers = std::array<std::optional<double>, 2>;
constexpr OperatorMap<NeutralNumbers> kNeutral(std::to_array<OperatorMap<NeutralNumbers>::Row>({
    {"Add", {0, 0}},
    {"Sum", {0, 0}},
    {"Sub", {std::nullopt, 0}},
    {"Mul", {1, 1}},
    {"Div", {std::nullopt, 1}},
    {"Pow", {std::nullopt, 1}},
    {"PRelu", {std::nullopt, 1}},
    {"Or", {0, 0}},
    {"And", {1, 1}},
    {"Max", {-INFINITY, -INFINITY}},
    {"Min", {INFINITY, INFINITY}},
}));

/// True if NODE's input number NUMBER is the number that leaves the other operand as it is.
bool is_neutral(const Node& node, size_t number, Facts& facts) {
  const NeutralNumbers* numbers = kNeutral.find(node);
  if (!numbers || node.inputs.size() != 2 || !node.inputs[0] || !node.inputs[1]) return false;
  const auto neutral = (*numbers)[number];
  return neutral && facts.uniform(*node.inputs[number]) == neutral &&
         same_shape(*node.inputs[1 - number], *node.outputs[0], facts);
}

/// The operand that NODE, a Where, chooses everywhere, whatever the other holds; null if its condition is not known.
Value* chosen_everywhere(const Node& node, Facts& facts) {
  const auto condition = node.input(0) && node.input(1) && node.input(2) ? facts.uniform(*node.inputs[0]) : std::nullopt;
  if (!condition) return nullptr;
  Value* chosen = node.inputs[*condition != 0 ? 1 : 2];
  return same_shape(*chosen, *node.outputs[0], facts) ? chosen : nullptr;
}

bool is_always(const Node&, Facts&) { return true; }
bool takes_one(const Node& node, Facts& facts) { return node.inputs.size() == 1 || is_neutral(node, 1, facts); }
bool is_neutral_behind(const Node& node, Facts& facts) { return is_neutral(node, 1, facts); }
bool keeps_shape(const Node& node, Facts& facts) { return same_shape(*node.inputs[0], *node.outputs[0], facts); }
bool slices_nothing(const Node& node, Facts& facts) { return steps_are_one(node, facts) && keeps_shape(node, facts); }

bool has_one_output(const Node& node, Facts&) { return node.outputs.size() == 1; }
bool has_blocks_of_one(const Node& node, Facts&) { return node.int_attribute("blocksize", 0) == 1; }
bool keeps_negative(const Node& node, Facts&) { return node.float_attribute("alpha", 0.01F) == 1; }
/// True of a reduction over no axis. (One that names none reduces all, unless an attribute says otherwise.)
bool reduces_no_axis(const Node& node, Facts& facts) {
  const MaybeShape shape = may_be_no_op(node) ? facts.shape(*node.inputs[0]) : nullptr;
  const auto axes = shape ? reduced_axes(node, shape->size(), facts) : std::nullopt;
  return axes && axes->empty();
}

using NoOpCheck = bool (*)(const Node&, Facts&);

/// By operator: when a node of it changes nothing.
constexpr OperatorMap<NoOpCheck> kNoOpChecks(std::to_array<OperatorMap<NoOpCheck>::Row>({
    {"Identity", is_always},
    {"Cast", keeps_type},
    {"CastLike", keeps_type},
    {"Dropout", drops_nothing},
    {"Pad", pads_nothing},
    {"Concat", takes_one},
    {"Sum", takes_one},
    {"Transpose", transposes_nothing},
    {"Add", is_neutral_behind},
    {"Sub", is_neutral_behind},
    {"Mul", is_neutral_behind},
    {"Div", is_neutral_behind},
    {"Pow", is_neutral_behind},
    {"Max", is_neutral_behind},
    {"Min", is_neutral_behind},
    {"And", is_neutral_behind},
    {"Or", is_neutral_behind},
    {"Slice", slices_nothing},
    {"Reshape", keeps_shape},
    {"Expand", keeps_shape},
    {"Tile", keeps_shape},
    {"Squeeze", keeps_shape},
    {"Unsqueeze", keeps_shape},
    {"Flatten", keeps_shape},
    {"MemcpyFromHost", is_always},
    {"MemcpyToHost", is_always},
    {"Split", has_one_output},
    {"PRelu", is_neutral_behind},
    {"LeakyRelu", keeps_negative},
    {"DepthToSpace", has_blocks_of_one},
    {"SpaceToDepth", has_blocks_of_one},
    {"ReduceSum", reduces_no_axis},
    {"ReduceMean", reduces_no_axis},
    {"ReduceMax", reduces_no_axis},
    {"ReduceMin", reduces_no_axis},
    {"ReduceProd", reduces_no_axis},
}));

}  // namespace

bool same_shape(const Value& one, const Value& other, Facts& facts) {
  const MaybeShape a = facts.shape(one), b = facts.shape(other);
  return a && b && *a == *b;
}

Value* copied_by(const Node& node, Facts& facts) {
  if (is_no_op(node, facts)) return node.inputs[0];
  if (!node.domain().empty()) return nullptr;
  if (is_neutral(node, 0, facts)) return node.inputs[1];
  return node.is("Where") ? chosen_everywhere(node, facts) : nullptr;
}

bool is_no_op(const Node& node, Facts& facts) {
  if (node.inputs.empty() || !node.inputs[0] || node.outputs.empty() || !node.outputs[0]) return false;
  const NoOpCheck* changes_nothing = kNoOpChecks.find(node);
  return changes_nothing && (*changes_nothing)(node, facts);
}

bool may_be_no_op(const Node& node) {
  if (node.is("Split")) return node.outputs.size() == 1;
  if (has(node, Trait::kReduces)) return node.int_attribute("noop_with_empty_axes", 0) != 0;
  return kNoOpChecks.find(node) != nullptr || node.is("Where");
}

}  // namespace attn_opt
