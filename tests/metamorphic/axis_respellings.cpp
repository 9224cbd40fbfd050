// Axes counted from the front, from the back, or left to be the default.
#include <map>
#include <optional>

#include "tests/metamorphic/respelling.h"

namespace attn_opt {
namespace {

constexpr int kFirstThatCountsFromTheBack = 11;
constexpr int kFirstWithAxesAsInput = 13;

std::optional<int64_t> rank_of(Spelling& spelling, const Value* value) {
  const MaybeShape shape = value ? spelling.facts().shape(*value) : nullptr;
  if (!shape) return std::nullopt;
  return static_cast<int64_t>(shape->size());
}

/// AXIS counted from the other end.
int64_t turned(int64_t axis, int64_t rank) { return axis < 0 ? axis + rank : axis - rank; }

struct AxisAttribute {
  int first_opset;                ///< that takes negative axes
  std::optional<int64_t> absent;  ///< the axis that an absent attribute means
};

std::optional<AxisAttribute> axis_attribute(const Node& node, int opset) {
  if (!node.domain().empty()) return std::nullopt;
  const std::string& op = node.op();
  if (op == "Softmax" || op == "LogSoftmax") return AxisAttribute{11, opset < 13 ? 1 : -1};
  if (op == "Concat") return AxisAttribute{11, std::nullopt};
  if (op == "Gather" || op == "Split") return AxisAttribute{11, 0};
  if (op == "LayerNormalization") return AxisAttribute{17, -1};
  return std::nullopt;
}

/// Before opset 13 a Softmax flattens from its axis on, which matters to whether it may be turned as little.
std::vector<Change> turned_axes(Spelling& spelling, Random&) {
  std::vector<Change> changes;
  for (Node* node : spelling.nodes()) {
    const auto known = axis_attribute(*node, spelling.opset(*node));
    const auto rank = rank_of(spelling, node->input(0));
    if (!known || !rank || spelling.opset(*node) < known->first_opset) continue;
    const auto* attribute = node->attribute("axis");
    if (!attribute && !known->absent) continue;
    const int64_t axis = turned(attribute ? attribute->i() : *known->absent, *rank);
    changes.push_back([node, axis](Spelling&) { set_attribute(*node->proto, "axis", axis); });
  }
  return changes;
}

std::vector<Change> absent_axes(Spelling& spelling, Random&) {
  std::vector<Change> changes;
  for (Node* node : spelling.nodes()) {
    const auto known = axis_attribute(*node, spelling.opset(*node));
    const auto rank = rank_of(spelling, node->input(0));
    const auto* attribute = node->attribute("axis");
    if (!known || !known->absent || !rank || !attribute) continue;
    if (attribute->i() != *known->absent && turned(attribute->i(), *rank) != *known->absent) continue;
    changes.push_back([node](Spelling&) { drop_attribute(*node->proto, "axis"); });
  }
  return changes;
}

/// The input that lists axes, by operator, from opset 13 (Slice: 11) on.
int axes_input(const Node& node, int opset) {
  static const std::map<std::string, int> kInput = {{"Squeeze", 1}, {"Unsqueeze", 1}, {"ReduceSum", 1}, {"Slice", 3}};
  const auto found = node.domain().empty() ? kInput.find(node.op()) : kInput.end();
  if (found == kInput.end() || opset < (node.is("Slice") ? kFirstThatCountsFromTheBack : kFirstWithAxesAsInput)) return -1;
  return found->second;
}

std::vector<Change> turned_axes_inputs(Spelling& spelling, Random& random) {
  std::vector<Change> changes;
  for (Node* node : spelling.nodes()) {
    const int input = axes_input(*node, spelling.opset(*node));
    const Value* axes = input < 0 ? nullptr : node->input(static_cast<size_t>(input));
    const onnx::TensorProto* tensor = axes ? Spelling::constant(*axes) : nullptr;
    const auto rank = rank_of(spelling, node->is("Unsqueeze") ? node->output(0) : node->input(0));
    if (!tensor || !rank || tensor->data_type() != onnx::TensorProto::INT64 || tensor->dims_size() != 1) continue;
    const auto data = to_tensor(*tensor, *spelling.model().tensors);
    std::vector<int64_t> values;
    for (const int64_t axis : data->data<int64_t>()) values.push_back(random.coin() ? turned(axis, *rank) : axis);
    changes.push_back(
        [node, input, values](Spelling& d) { node->proto->set_input(input, d.add_constant(*node, int64_tensor(values))); });
  }
  return changes;
}

/// Slices of every axis from the first on need not say which.
std::vector<Change> absent_slice_axes(Spelling& spelling, Random&) {
  std::vector<Change> changes;
  for (Node* node : spelling.nodes()) {
    if (!node->is("Slice") || node->inputs.size() != 4 || !node->inputs[3]) continue;
    const IntegerData* axes = spelling.facts().integers(*node->inputs[3]);
    if (!axes || axes->values.size() != 1 || !axes->values[0].is(0)) continue;
    changes.push_back([node](Spelling&) { node->proto->mutable_input()->RemoveLast(); });
  }
  return changes;
}

}  // namespace

std::vector<Respelling> axis_respellings() {
  std::vector<Respelling> all = {{"axis from the other end", turned_axes},
                                 {"axis left out", absent_axes},
                                 {"axes input from the other end", turned_axes_inputs},
                                 {"axes of Slice left out", absent_slice_axes}};
  for (Respelling& respelling : all) respelling.keeps_operators = false;
  return all;
}

}  // namespace attn_opt
