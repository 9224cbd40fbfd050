// Imports of operator sets that fusing leaves without a user.
#pragma once

#include <onnx/onnx_pb.h>

#include "src/optimizer/operator_counts.h"

namespace attn_opt {

/// Drops the imports of MODEL that operators counted in BEFORE needed and none in AFTER does, nor a local function. One
/// that the model came with unused stays.
void drop_imports(const OperatorCounts& before, const OperatorCounts& after, onnx::ModelProto& model);

}  // namespace attn_opt
