// Runs a model on drawn inputs whose sizes go together.
#pragma once

#include "src/trial/draw_inputs.h"

namespace attn_opt {

struct DrawnRun {
  DrawnInputs inputs;
  std::vector<Tensor> outputs;
};

/// Draws inputs for GRAPH and runs EXECUTOR on them. Sizes that OPTIONS leave open are at first unrelated primes; if the model
/// does not run with those, others are tried: one the sum of two others (total = past + seq), all the same. If an output
/// has NaNs, bool inputs are tried with other contents too, as all true may mean that every key is masked.
/// Errors: those of draw_inputs(), and of the first run if none succeeds.
Expected<DrawnRun> run_on_drawn(const Executor& executor, const onnx::GraphProto& graph, const DrawOptions& options);

}  // namespace attn_opt
