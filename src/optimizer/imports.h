// Imports of operator sets: those that fusing leaves without a user, and that of com.microsoft, which exporters may leave out.
#pragma once

#include <onnx/onnx_pb.h>

#include "src/optimizer/operator_counts.h"

namespace attn_opt {

/// Drops the imports of MODEL that operators counted in BEFORE needed and none in AFTER does, nor a local function. One
/// that the model came with unused stays. Adds that of com.microsoft where it lacks.
void update_imports(const OperatorCounts& before, const OperatorCounts& after, onnx::ModelProto& model);

}  // namespace attn_opt
