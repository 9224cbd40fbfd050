#include "src/trial/rounding_types.h"

#include "src/trial/draw_inputs.h"
#include "src/trial/tensor_difference.h"

namespace attn_opt {
namespace {

/// ONE or OTHER, of which results may differ by more.
DataType coarser(DataType one, DataType other) {
  return model_tolerance(one).relative < model_tolerance(other).relative ? other : one;
}

}  // namespace

RoundingTypes::RoundingTypes(const onnx::GraphProto& graph) {
  for (const onnx::ValueInfoProto* input : required_inputs(graph)) types_[input->name()] = onnx::TensorProto::UNDEFINED;
}

void RoundingTypes::note(const NodeRun& run) {
  DataType type = within_;
  for (const Tensor& output : run.outputs) type = coarser(type, element_type(output));
  within_ = run.depth > 0 ? type : onnx::TensorProto::UNDEFINED;
  if (run.depth > 0) return;
  bool is_computed = false;
  for (const std::string& input : run.node.input()) {
    const auto known = types_.find(input);
    if (known == types_.end()) continue;
    is_computed = true;
    type = coarser(type, known->second);
  }
  if (!is_computed) return;
  for (const std::string& output : run.node.output()) types_[output] = type;
}

DataType RoundingTypes::of(const std::string& name, DataType type) const {
  const auto known = types_.find(name);
  return known == types_.end() ? type : coarser(type, known->second);
}

}  // namespace attn_opt
