// Copies that rearrange elements, shared by kernels.
#pragma once

#include "src/exec/dispatch.h"
#include "src/exec/kernel.h"
#include "src/exec/layout/strided.h"

namespace attn_opt {

/// TENSOR with axis i of the result being axis PERM[i]; checks that PERM is a permutation.
Expected<Tensor> transposed(const KernelContext& context, const Tensor& tensor, const std::vector<int64_t>& perm);
/// DIMS elements of TENSOR from STARTS on by STEPS (may be negative), all of which must lie in it.
Expected<Tensor> sliced(const KernelContext& context, const Tensor& tensor, const Dims& starts, const Dims& steps, Dims dims);

/// The slices of TENSOR at INDICES, all in range, along AXIS.
Expected<Tensor> slices_at(const KernelContext& context, const Tensor& tensor, int64_t axis,
                           const std::vector<int64_t>& indices);

/// PARTS, one at least, one behind the other along AXIS.
Expected<Tensor> concatenated(const KernelContext& context, std::span<const Tensor> parts, int64_t axis);

/// For each position along one axis of a result, which position along that axis of the source it shows; -1:
/// none.
using AxisMap = std::vector<int64_t>;
/// A tensor of MAPS' lengths whose elements are TENSOR's as MAPS (one an axis) say, and FILL's one element
/// elsewhere.
Expected<Tensor> gathered(const KernelContext& context, const Tensor& tensor, const std::vector<AxisMap>& maps,
                          const Tensor& fill);

}  // namespace attn_opt
