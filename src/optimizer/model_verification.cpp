#include "src/optimizer/model_verification.h"

#include <algorithm>
#include <cmath>

#include "src/trial/drawn_run.h"
#include "src/trial/rounding_types.h"
#include "src/trial/tensor_difference.h"
#include "src/trial/test_data.h"

namespace attn_opt {
namespace {

/// Inputs, and what the model gave for them before.
Expected<std::vector<DrawnRun>> runs_before(const onnx::GraphProto& graph, const Executor& before, const ModelTrial& trial) {
  std::vector<DrawnRun> runs;
  if (!trial.test_data.empty()) {
    ATTN_OPT_TRY(auto sets, read_test_data(trial.test_data, graph));
    for (TestDataSet& set : sets) {
      ATTN_OPT_TRY(auto outputs, before.run(set.inputs));
      runs.push_back({{std::move(set.inputs), {}}, std::move(outputs)});
    }
    return runs;
  }
  for (int draw = 0; draw < trial.draws; ++draw) {
    DrawOptions options;
    options.sizes = trial.sizes;
    options.seed = static_cast<uint64_t>(draw);
    options.memory_limit = trial.memory_limit;
    ATTN_OPT_TRY(DrawnRun run, run_on_drawn(before, graph, options));
    runs.push_back(std::move(run));
  }
  return runs;
}

/// The node drew what it gave: it is no Dropout that was told not to train.
bool drew(const NodeRun& run) {
  if (!is_random(run.node)) return false;
  if (run.node.op_type() != "Dropout" || run.inputs.size() < 3) return true;
  const Tensor& training = run.inputs[2];
  return training.type() != onnx::TensorProto::BOOL || training.size() != 1 || training.data<bool>()[0];
}

}  // namespace

Expected<Tensor> with_nans_of(const Tensor& expected, const Tensor& actual) {
  if (!is_floating(actual.type()) || expected.type() != actual.type() || expected.dims() != actual.dims()) return actual;
  ATTN_OPT_TRY(const Tensor wide_expected, expected.cast(onnx::TensorProto::DOUBLE));
  ATTN_OPT_TRY(const Tensor wide_actual, actual.cast(onnx::TensorProto::DOUBLE));
  Tensor result(onnx::TensorProto::DOUBLE, actual.dims());
  const auto from = wide_actual.data<double>(), nans = wide_expected.data<double>();
  const auto to = result.mutable_data<double>();
  for (size_t i = 0; i < to.size(); ++i) to[i] = std::isnan(nans[i]) ? nans[i] : from[i];
  return result.cast(actual.type());
}

bool assumes_rows_keep_a_key(const Report& report) {
  return std::ranges::any_of(report.sites, [](const SiteReport& site) {
    return site.outcome == SiteReport::Outcome::kFused &&
           std::ranges::any_of(site.preconditions, [](const Precondition& precondition) {
             return precondition.id == "rows-keep-a-key" && !precondition.proven;
           });
  });
}

Expected<ModelVerification> verify_model(const onnx::ModelProto& before, const onnx::ModelProto& after,
                                         const TensorStore& tensors, const ModelTrial& trial, bool assumes_rows_keep_a_key) {
  ExecutorOptions options;
  options.schema_bodies = SchemaBodies::kAttention;
  options.threads = trial.threads;
  options.memory_limit = trial.memory_limit;
  const onnx::NodeProto* random = nullptr;
  RoundingTypes rounding(before.graph());
  options.on_node = [&](const NodeRun& run) {
    random = drew(run) ? &run.node : random;
    rounding.note(run);
  };
  ATTN_OPT_TRY(const auto executor_before, Executor::create(before, tensors, options));
  options.on_node = nullptr;
  ATTN_OPT_TRY(const auto executor_after, Executor::create(after, tensors, options));
  ATTN_OPT_TRY(const auto runs, runs_before(before.graph(), executor_before, trial));
  if (random != nullptr) {
    return fail(ErrorCode::kUnsupported, random->name(), "the result of " + random->op_type() + " is random");
  }
  std::vector<TensorDifference> worst(static_cast<size_t>(before.graph().output_size()));
  for (const DrawnRun& run : runs) {
    ATTN_OPT_TRY(const auto outputs, run_on(executor_after, run.inputs));
    for (size_t i = 0; i < worst.size(); ++i) {
      Tensor actual = outputs[i];
      if (assumes_rows_keep_a_key) {
        ATTN_OPT_TRY(actual, with_nans_of(run.outputs[i], outputs[i]));
      }
      const DataType type = rounding.of(before.graph().output(static_cast<int>(i)).name(), element_type(actual));
      const auto tolerance = with_given(model_tolerance(type), trial.relative, trial.absolute);
      worst[i] = worse(worst[i], difference(run.outputs[i], actual, tolerance));
    }
  }
  ModelVerification result;
  result.runs = static_cast<int>(runs.size());
  for (size_t i = 0; i < worst.size(); ++i) {
    result.outputs.push_back({before.graph().output(static_cast<int>(i)).name(), worst[i].agrees(), worst[i].absolute,
                              worst[i].relative, worst[i].ulp, to_string(worst[i])});
  }
  return result;
}

}  // namespace attn_opt
