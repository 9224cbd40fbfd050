// Indices that data gives, checked before anything is read or written through them.
#pragma once

#include "src/exec/kernel.h"
#include "src/exec/layout/strided.h"

namespace attn_opt {

/// The values of INDICES, each in [-EXTENT, EXTENT), made non-negative.
Expected<std::vector<int64_t>> checked_indices(const KernelContext& context, const Tensor& indices, int64_t extent);

/// Where each element of a GatherElements or ScatterElements index tensor points.
struct ElementIndices {
  std::vector<int64_t> indices;
  Dims dims;         ///< of the index tensor
  Dims strides;      ///< of data, 0 along the axis
  int64_t step = 1;  ///< of data along the axis

  /// Calls f(i, offset) for element I of the index tensor, which points at OFFSET in data.
  template <class F>
  void each(F&& f) const {
    int64_t i = 0;
    StridedLoop<1>(dims, {strides}).elements([&](const std::array<int64_t, 1>& at) {
      f(i, at[0] + indices[static_cast<size_t>(i)] * step);
      ++i;
    });
  }
};

/// Of the node's attribute axis.
Expected<ElementIndices> element_indices(const KernelContext& context, const Tensor& data, const Tensor& indices);

/// Blocks of LENGTH elements at OFFSETS of data that the rows of a GatherND or ScatterND index tensor point
/// at.
struct BlockIndices {
  std::vector<int64_t> offsets;
  int64_t length = 1;
};

Expected<BlockIndices> block_indices(const KernelContext& context, const Tensor& data, const Tensor& indices,
                                     int64_t batch_dims);

}  // namespace attn_opt
