#include "src/optimizer/model_verification.h"

#include "src/trial/draw_inputs.h"
#include "src/trial/tensor_difference.h"
#include "src/trial/test_data.h"

namespace attn_opt {
namespace {

Expected<std::vector<DrawnInputs>> inputs_of(const onnx::GraphProto& graph, const ModelTrial& trial) {
  std::vector<DrawnInputs> inputs;
  if (!trial.test_data.empty()) {
    ATTN_OPT_TRY(auto sets, read_test_data(trial.test_data, graph));
    for (TestDataSet& set : sets) inputs.push_back({std::move(set.inputs), {}});
    return inputs;
  }
  for (int draw = 0; draw < trial.draws; ++draw) {
    DrawOptions options;
    options.sizes = trial.sizes;
    options.seed = static_cast<uint64_t>(draw);
    options.memory_limit = trial.memory_limit;
    ATTN_OPT_TRY(DrawnInputs drawn, draw_inputs(graph, options));
    inputs.push_back(std::move(drawn));
  }
  return inputs;
}

Tolerance tolerance_of(const ModelTrial& trial, DataType type) {
  Tolerance tolerance = model_tolerance(type);
  if (trial.relative) tolerance.relative = *trial.relative;
  if (trial.absolute) tolerance.absolute = *trial.absolute;
  return tolerance;
}

}  // namespace

Expected<ModelVerification> verify_model(const onnx::ModelProto& before, const onnx::ModelProto& after,
                                         const TensorStore& tensors, const ModelTrial& trial) {
  ExecutorOptions options;
  options.threads = trial.threads;
  options.memory_limit = trial.memory_limit;
  ATTN_OPT_TRY(const auto runs_before, Executor::create(before, tensors, options));
  ATTN_OPT_TRY(const auto runs_after, Executor::create(after, tensors, options));
  ATTN_OPT_TRY(const auto inputs, inputs_of(before.graph(), trial));
  std::vector<TensorDifference> worst(static_cast<size_t>(before.graph().output_size()));
  for (const DrawnInputs& input : inputs) {
    ATTN_OPT_TRY(const auto expected, run_on(runs_before, input));
    ATTN_OPT_TRY(const auto actual, run_on(runs_after, input));
    for (size_t i = 0; i < worst.size(); ++i) {
      worst[i] = worse(worst[i], difference(expected[i], actual[i], tolerance_of(trial, expected[i].type())));
    }
  }
  ModelVerification result;
  result.runs = static_cast<int>(inputs.size());
  for (size_t i = 0; i < worst.size(); ++i) {
    result.outputs.push_back({before.graph().output(static_cast<int>(i)).name(), worst[i].agrees(), worst[i].absolute,
                              worst[i].relative, worst[i].ulp, to_string(worst[i])});
  }
  return result;
}

}  // namespace attn_opt
