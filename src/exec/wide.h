// Tensors in the type that a kernel computes in.
#pragma once

#include "src/exec/kernel.h"

namespace attn_opt {

/// TENSOR.cast(TYPE), after checking that it fits in the memory budget.
inline Expected<Tensor> in_type(const KernelContext& context, const Tensor& tensor, DataType type) {
  if (tensor.type() != type) {
    ATTN_OPT_CHECK(context.within_budget(tensor.size(), element_size(type)));
  }
  return tensor.cast(type);
}

inline Expected<Tensor> in_double(const KernelContext& context, const Tensor& tensor) {
  return in_type(context, tensor, onnx::TensorProto::DOUBLE);
}

}  // namespace attn_opt
