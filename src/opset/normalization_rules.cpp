#include <algorithm>

#include "attn_opt/edit.h"
#include "src/opset/step_rules.h"

namespace attn_opt {
namespace {

using Obstacle = std::optional<std::string>;

/// True if AXIS is the last one, or all behind it have one element.
bool is_last_axis(const Shape& shape, int64_t axis) {
  const auto rank = static_cast<int64_t>(shape.size());
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return false;
  return std::all_of(shape.begin() + axis + 1, shape.end(), [](const Dim& size) { return size.is(1); });
}

/// Softmax, LogSoftmax and Hardmax took AXIS and all behind it as one, axis 1 by default; since 13 they take
/// one axis, the last by default.
Obstacle raise_softmax(Draft& draft, const RaiseSite& site) {
  const bool says_axis = draft.attribute("axis") != nullptr;
  const int64_t axis = draft.int_attribute("axis", 1);
  const MaybeShape shape = site.shape(0);
  if (axis == -1 || (shape && is_last_axis(*shape, axis))) {
    if (!says_axis) draft.set(GraphBuilder::attribute("axis", axis));
    return {};
  }
  const std::string sizes = draft.add("Shape", {draft.node().input(0)});
  draft.set_input(0, draft.add("Flatten", {draft.node().input(0)}, {GraphBuilder::attribute("axis", axis)}));
  draft.set(GraphBuilder::attribute("axis", int64_t{-1}));
  draft.append("Reshape", {draft.divert_output(0), sizes}, draft_output(0), {GraphBuilder::attribute("allowzero", int64_t{1})});
  return {};
}

/// With spatial = 0 there were statistics of their own for each element of a sample.
Obstacle raise_batch_normalization_9(Draft& draft, const RaiseSite&) {
  if (draft.int_attribute("spatial", 1) != 1) return "spatial = 0 is gone";
  draft.drop("spatial");
  return {};
}

/// More than one output meant training; since 14 an attribute says so, and the last two outputs are gone.
Obstacle raise_batch_normalization_14(Draft& draft, const RaiseSite& site) {
  bool trains = false;
  for (size_t i = 1; i < site.node().outputs.size(); ++i) {
    const Value* output = site.node().output(i);
    trains |= output != nullptr;
    if (i > 2 && output != nullptr && !output->unused()) return "saved_mean and saved_var are gone";
  }
  if (trains) draft.set(GraphBuilder::attribute("training_mode", int64_t{1}));
  const int outputs = trains ? 3 : 1;
  if (draft.node().output_size() > outputs) draft.drop_outputs_from(outputs);
  return {};
}

/// Scale and bias were one for each group, and are one for each channel since 21. Stage one was computed in
/// the type of the input and is in float32 by default since.
Obstacle raise_group_normalization(Draft& draft, const RaiseSite& site) {
  const MaybeShape shape = site.shape(0);
  const int64_t groups = draft.int_attribute("num_groups", 0);
  if (!shape || shape->size() < 2 || !(*shape)[1].is_constant()) return "the number of channels is not known";
  const int64_t channels = (*shape)[1].value();
  if (groups < 1 || channels % groups != 0) return "its groups do not divide the channels";
  if (site.type(0) == onnx::TensorProto::UNDEFINED) return "the type of its input is not known";
  if (site.type(0) != onnx::TensorProto::FLOAT) {
    draft.set(GraphBuilder::attribute("stash_type", static_cast<int64_t>(site.type(0))));
  }
  if (channels == groups) return {};
  for (const int i : {1, 2}) {
    const std::string column = draft.add("Reshape", {draft.node().input(i), draft.add_ints({groups, 1})});
    const std::string table = draft.add("Expand", {column, draft.add_ints({groups, channels / groups})});
    draft.set_input(i, draft.add("Reshape", {table, draft.add_ints({channels})}));
  }
  return {};
}

/// The default axes are said: the body that ONNX gives the operator lacks them, and shape inference fails.
Obstacle raise_mean_variance_normalization(Draft& draft, const RaiseSite&) {
  if (draft.attribute("axes") == nullptr) {
    draft.set(GraphBuilder::attribute("axes", std::vector<int64_t>{0, 2, 3}));
  }
  return {};
}

bool is_wider(DataType type, DataType than) {
  using Types = onnx::TensorProto;
  const bool is_half = than == Types::FLOAT16 || than == Types::BFLOAT16;
  return (type == Types::DOUBLE && (is_half || than == Types::FLOAT)) || (type == Types::FLOAT && is_half);
}

/// ONNX Runtime's own of before 17 gives the type of the scale, whatever that of the input.
Obstacle raise_layer_normalization(Draft& draft, const RaiseSite& site) {
  const DataType input = site.type(0), scale = site.type(1);
  if (input == onnx::TensorProto::UNDEFINED || scale == onnx::TensorProto::UNDEFINED)
    return "the types of its input and scale are not known";
  if (input == scale) return {};
  if (!is_wider(scale, input)) return "its scale is of a type that does not hold its input";
  draft.set_input(0, draft.add("Cast", {draft.node().input(0)}, {GraphBuilder::attribute("to", static_cast<int64_t>(scale))}));
  return {};
}

}  // namespace

void add_normalization_rules(StepRules& rules) {
  for (const char* op : {"Softmax", "LogSoftmax", "Hardmax"}) rules[{op, 13}] = raise_softmax;
  rules[{"BatchNormalization", 9}] = raise_batch_normalization_9;
  rules[{"BatchNormalization", 14}] = raise_batch_normalization_14;
  rules[{"MeanVarianceNormalization", 13}] = raise_mean_variance_normalization;
  rules[{"LayerNormalization", 17}] = raise_layer_normalization;
  rules[{"GroupNormalization", 21}] = raise_group_normalization;
}

}  // namespace attn_opt
