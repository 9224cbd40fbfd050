// Sparse tensors, which are computed with as dense ones.
#pragma once

#include "attn_opt/model.h"
#include "attn_opt/tensor.h"

namespace attn_opt {

/// SPARSE with its zeros. Errors: kInvalidInput (indices that do not fit), kLimit (more than BUDGET bytes).
Expected<Tensor> to_dense(const onnx::SparseTensorProto& sparse, const TensorStore& store, size_t budget);

}  // namespace attn_opt
