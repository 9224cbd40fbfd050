#include "src/match/node_forms.h"

#include <algorithm>
#include <numeric>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"

namespace attn_opt {
namespace {

/// True for what is the same in each run, as what is added to a copy is.
bool is_fixed(const Value* value) {
  const Node* node = value ? value->producer : nullptr;
  if (node && node->is("ConstantOfShape")) return is_fixed(node->input(0));
  return !value || value->is_stored();
}

}  // namespace

std::optional<size_t> axis_in(int64_t axis, size_t rank) {
  const int64_t size = static_cast<int64_t>(rank);
  if (axis < -size || axis >= size) return std::nullopt;
  return static_cast<size_t>(axis < 0 ? axis + size : axis);
}

bool flattens(const Node& node) {
  constexpr int kFirstOfOneAxis = 13;
  return (node.is("Softmax") || node.is("LogSoftmax")) && node.graph->model().onnx_opset(node) < kFirstOfOneAxis;
}

int64_t softmax_axis(const Node& node) { return node.int_attribute("axis", flattens(node) ? 1 : -1); }

std::optional<size_t> only_softmax_axis(const Node& node, const Shape& shape) {
  const auto own = axis_in(softmax_axis(node), shape.size());
  if (!own || !flattens(node)) return own;
  std::optional<size_t> found;
  for (size_t axis = *own; axis < shape.size(); ++axis) {
    if (shape[axis].is(1)) continue;
    if (found) return std::nullopt;
    found = axis;
  }
  return found.value_or(shape.size() - 1);
}

std::vector<Dim> dims_given(const Node& node, const char* attribute, int input, Facts& facts) {
  if (const auto* ints = node.ints_attribute(attribute)) return {ints->begin(), ints->end()};
  const IntegerData* data = node.input(input) ? facts.integers(*node.input(input)) : nullptr;
  return data ? std::vector<Dim>(data->values.begin(), data->values.end()) : std::vector<Dim>();
}

IntegerList integer_list(const RuleContext& context, std::string_view attribute, size_t input) {
  if (const auto* ints = context.node().ints_attribute(attribute)) {
    return {true, std::vector<int64_t>(ints->begin(), ints->end())};
  }
  if (!context.has(input)) return {};
  return {true, context.numbers(input)};
}

std::optional<std::vector<size_t>> axes_of(const RuleContext& context, size_t rank, std::vector<size_t> absent) {
  const IntegerList list = integer_list(context, "axes", 1);
  if (!list.given) return absent;
  if (!list.values) return std::nullopt;
  std::vector<size_t> axes;
  for (const int64_t given : *list.values) {
    const std::optional<size_t> axis = axis_in(given, rank);
    if (!axis || std::ranges::find(axes, *axis) != axes.end()) return std::nullopt;
    axes.push_back(*axis);
  }
  std::ranges::sort(axes);
  return axes;
}

bool is_inference_dropout(const RuleContext& context) {
  if (context.opset() < 12 || !context.has(2)) return true;
  const std::optional<double> training = context.scalar(2);
  return (training && *training == 0) || (context.has(1) && context.scalar(1) == 0.0);
}

std::vector<size_t> all_axes(size_t rank) {
  std::vector<size_t> axes(rank);
  std::iota(axes.begin(), axes.end(), size_t{0});
  return axes;
}

Value* cut_and_joined(const Node& node, const std::function<std::optional<size_t>(const Value&)>& rank) {
  const Node* split = node.is("ConcatFromSequence") && node.input(0) ? node.inputs[0]->producer : nullptr;
  if (!split || !split->is("SplitToSequence") || !split->input(0)) return nullptr;
  const auto axes = rank(*split->inputs[0]);
  if (!axes) return nullptr;
  const bool keeps_axis = split->input(1) || split->int_attribute("keepdims", 1) != 0;
  const auto cut = axis_in(split->int_attribute("axis", 0), *axes), joined = axis_in(node.int_attribute("axis", 0), *axes);
  const bool joins_along_new = node.int_attribute("new_axis", 0) != 0;
  return cut && cut == joined && keeps_axis != joins_along_new ? split->inputs[0] : nullptr;
}

bool may_copy(const Node& node) { return has(node, Trait::kKeepsAll) || may_be_no_op(node); }

const Value* copied(const Value& value) {
  const Node* node = value.producer;
  if (!node || !may_copy(*node)) return nullptr;
  const auto found = std::ranges::find_if_not(node->inputs, is_fixed);
  return found == node->inputs.end() ? node->input(0) : *found;
}

}  // namespace attn_opt
