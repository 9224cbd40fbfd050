// Two models on the same drawn inputs.
#pragma once

#include <string>
#include <vector>

#include "src/cli/options/trial_arguments.h"

namespace attn_opt {

/// A model and what errors call it.
struct NamedModel {
  const RunnableModel& model;
  std::string name;
  const onnx::GraphProto& graph() const { return model.model->proto.graph(); }
};

struct OutputDifference {
  std::string name;             ///< of A's output
  TensorDifference difference;  ///< the worst of all draws
};

/// Draws inputs for A, SEEDS times for each combination of sizes that TRIAL gives, and runs both. Outputs are paired by
/// name, or by position if the names differ. Errors: kMismatch (inputs or outputs that the other has not), those of running.
Expected<std::vector<OutputDifference>> compare_models(const NamedModel& a, const NamedModel& b, int seeds,
                                                       const TrialArguments& trial);

}  // namespace attn_opt
