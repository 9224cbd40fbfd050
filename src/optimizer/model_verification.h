// Runs a whole model as it was and as it was rewritten.
#pragma once

#include "attn_opt/optimizer.h"

namespace attn_opt {

/// BEFORE and AFTER have the same inputs and outputs, and TENSORS the bytes of both. Errors: kUnsupported (an operator that
/// the executor lacks), kLimit, kInvalidInput (test data or sizes that do not fit), kUsage (a size of no dimension).
Expected<ModelVerification> verify_model(const onnx::ModelProto& before, const onnx::ModelProto& after,
                                         const TensorStore& tensors, const ModelTrial& trial);

}  // namespace attn_opt
