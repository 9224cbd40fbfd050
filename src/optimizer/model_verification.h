// Runs a whole model as it was and as it was rewritten.
#pragma once

#include "attn_opt/optimizer.h"

namespace attn_opt {

/// ACTUAL with NaN where EXPECTED is NaN, if they can be compared.
Expected<Tensor> with_nans_of(const Tensor& expected, const Tensor& actual);
/// True if a site of REPORT was fused on the assumption that each row of scores keeps a key.
bool assumes_rows_keep_a_key(const Report& report);

/// What BEFORE gives as NaN is not compared where ASSUMES_ROWS_KEEP_A_KEY: a row of scores that keeps none is NaN there, and
/// 0 after.
/// BEFORE and AFTER have the same inputs and outputs, and TENSORS the bytes of both. Errors: kUnsupported (an operator that
/// the executor lacks), kLimit, kInvalidInput (test data or sizes that do not fit), kUsage (a size of no dimension).
Expected<ModelVerification> verify_model(const onnx::ModelProto& before, const onnx::ModelProto& after,
                                         const TensorStore& tensors, const ModelTrial& trial, bool assumes_rows_keep_a_key);

}  // namespace attn_opt
