// Copies that rearrange elements, shared by kernels.
#pragma once

#include "src/exec/dispatch.h"
#include "src/exec/kernel.h"
#include "src/exec/strided.h"

namespace attn_opt {

/// TENSOR with axis i of the result being axis PERM[i]; checks that PERM is a permutation.
Expected<Tensor> transposed(const KernelContext& context, const Tensor& tensor, const std::vector<int64_t>& perm);
/// DIMS elements of TENSOR from STARTS on by STEPS (may be negative), all of which must lie in it.
Expected<Tensor> sliced(const KernelContext& context, const Tensor& tensor, const Dims& starts, const Dims& steps,
                        Dims dims);

}  // namespace attn_opt
