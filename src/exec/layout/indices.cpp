#include "src/exec/layout/indices.h"

namespace attn_opt {

Expected<std::vector<int64_t>> checked_indices(const KernelContext& context, const Tensor& indices, int64_t extent) {
  ATTN_OPT_TRY(auto values, context.integers(indices));
  for (int64_t& value : values) {
    if (value < -extent || value >= extent) {
      return context.invalid("index " + std::to_string(value) + " is out of range for an axis of " + std::to_string(extent));
    }
    if (value < 0) value += extent;
  }
  return values;
}

Expected<ElementIndices> element_indices(const KernelContext& context, const Tensor& data, const Tensor& indices) {
  ATTN_OPT_TRY(const int64_t axis, context.axis(context.attribute_int("axis", 0), data.rank()));
  const size_t at = static_cast<size_t>(axis);
  bool fits = indices.rank() == data.rank();
  for (size_t i = 0; fits && i < data.dims().size(); ++i) {
    fits = i == at || indices.dims()[i] <= data.dims()[i];
  }
  if (!fits) {
    return context.invalid("indices of shape " + print_dims(indices.dims()) + " do not fit data of shape " +
                           print_dims(data.dims()));
  }
  ElementIndices result;
  ATTN_OPT_TRY(result.indices, checked_indices(context, indices, data.dims()[at]));
  result.dims = indices.dims();
  result.strides = strides_of(data.dims());
  result.step = result.strides[at];
  result.strides[at] = 0;
  return result;
}

Expected<BlockIndices> block_indices(const KernelContext& context, const Tensor& data, const Tensor& indices,
                                     int64_t batch_dims) {
  const int64_t width = indices.rank() == 0 ? -1 : indices.dims().back();
  bool fits = width >= 0 && batch_dims >= 0 && batch_dims < indices.rank() && batch_dims + width <= data.rank();
  for (size_t i = 0; fits && i < static_cast<size_t>(batch_dims); ++i) {
    fits = indices.dims()[i] == data.dims()[i];
  }
  if (!fits) {
    return context.invalid("indices of shape " + print_dims(indices.dims()) + " do not fit data of shape " +
                           print_dims(data.dims()));
  }
  ATTN_OPT_TRY(const auto values, context.integers(indices));
  const Dims strides = strides_of(data.dims());
  const std::span<const int64_t> rows_shape(indices.dims().data(), indices.dims().size() - 1);
  const int64_t rows = element_count(rows_shape);
  ATTN_OPT_CHECK(context.within_budget(rows, sizeof(int64_t)));
  const int64_t batches = element_count(rows_shape.first(static_cast<size_t>(batch_dims)));
  const int64_t batch_size = batches == 0 ? 0 : data.size() / batches;
  BlockIndices result;
  result.length = element_count(std::span(data.dims()).subspan(static_cast<size_t>(batch_dims + width)));
  for (int64_t row = 0; row < rows; ++row) {
    int64_t offset = row / (rows / batches) * batch_size;
    for (int64_t k = 0; k < width; ++k) {
      const size_t axis = static_cast<size_t>(batch_dims + k);
      int64_t index = values[static_cast<size_t>(row * width + k)];
      if (index < -data.dims()[axis] || index >= data.dims()[axis]) {
        return context.invalid("index " + std::to_string(index) + " is out of range for an axis of " +
                               std::to_string(data.dims()[axis]));
      }
      if (index < 0) index += data.dims()[axis];
      offset += index * strides[axis];
    }
    result.offsets.push_back(offset);
  }
  return result;
}

}  // namespace attn_opt
