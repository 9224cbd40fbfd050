#include "src/verify/logical.h"

#include <algorithm>
#include <array>

namespace attn_opt {
namespace {

/// Visits the elements of a tensor in the row-major order of axes of the given sizes and strides.
class StridedOrder {
 public:
  void add(int64_t size, int64_t stride) {
    sizes_.push_back(size);
    strides_.push_back(stride);
  }
  std::vector<double> of(const std::vector<double>& source) const {
    const size_t outer_axes = sizes_.empty() ? 0 : sizes_.size() - 1;
    const int64_t row = sizes_.empty() ? 1 : sizes_.back(), stride = sizes_.empty() ? 0 : strides_.back();
    const int64_t count = element_count(sizes_);
    std::vector<double> values;
    values.reserve(static_cast<size_t>(count));
    std::vector<int64_t> index(outer_axes, 0);
    int64_t offset = 0;
    while (static_cast<int64_t>(values.size()) < count) {
      for (int64_t i = 0; i < row; ++i) values.push_back(source[static_cast<size_t>(offset + i * stride)]);
      for (size_t axis = outer_axes; axis-- > 0;) {
        offset += strides_[axis];
        if (++index[axis] < sizes_[axis]) break;
        offset -= strides_[axis] * sizes_[axis];
        index[axis] = 0;
      }
    }
    return values;
  }

 private:
  Dims sizes_, strides_;
};

/// Sizes of MAP's factors in a tensor of DIMS; nullopt if one is not known.
std::optional<std::vector<int64_t>> sizes_of_factors(const AxisMap& map, const Dims& dims, const SizeAssignment& sizes) {
  std::vector<std::optional<int64_t>> found(map.factors().size());
  for (size_t axis = 0; axis < std::min(map.rank(), dims.size()); ++axis)
    if (map.axis(axis).size() == 1) found[static_cast<size_t>(map.axis(axis)[0])] = dims[axis];
  std::vector<int64_t> factor_sizes;
  for (size_t i = 0; i < found.size(); ++i) {
    if (!found[i]) found[i] = sizes.of(map.factors()[i].size);
    if (!found[i]) return std::nullopt;
    factor_sizes.push_back(*found[i]);
  }
  return factor_sizes;
}

/// Stride of each of MAP's factors in a tensor of DIMS, 0 for repeated ones; nullopt if MAP and DIMS do not fit.
std::optional<std::vector<int64_t>> factor_strides(const AxisMap& map, const std::vector<int64_t>& factor_sizes,
                                                   const Dims& dims) {
  if (map.rank() != dims.size()) return std::nullopt;
  std::vector<int64_t> strides(factor_sizes.size(), 0);
  int64_t stride = 1;
  for (size_t axis = dims.size(); axis-- > 0;) {
    int64_t extent = 1;
    const auto& factors = map.axis(axis);
    for (size_t i = factors.size(); i-- > 0;) {
      const auto factor = static_cast<size_t>(factors[i]);
      // A size may be declared as whatever a model holds.
      if (__builtin_mul_overflow(stride, extent, &strides[factor]) ||
          __builtin_mul_overflow(extent, factor_sizes[factor], &extent))
        return std::nullopt;
    }
    if (extent != dims[axis]) return std::nullopt;
    stride *= extent;
  }
  return strides;
}

}  // namespace

std::vector<double> numbers_of(const Tensor& tensor) {
  const auto as_double = tensor.cast(onnx::TensorProto::DOUBLE);
  if (!as_double) return {};
  const auto data = as_double->data<double>();
  return {data.begin(), data.end()};
}

std::optional<LogicalTensor> to_logical(const Tensor& tensor, const AxisMap& map, const SizeAssignment& sizes) {
  const auto factor_sizes = sizes_of_factors(map, tensor.dims(), sizes);
  if (!factor_sizes) return std::nullopt;
  std::array<int64_t, 4> extents = {1, 1, 1, 1};
  for (size_t i = 0; i < factor_sizes->size(); ++i) {
    int64_t& extent = extents[static_cast<size_t>(map.factors()[i].role)];
    if (__builtin_mul_overflow(extent, (*factor_sizes)[i], &extent)) return std::nullopt;
  }
  const auto strides = factor_strides(map, *factor_sizes, tensor.dims());
  const std::vector<double> source = numbers_of(tensor);
  if (!strides || static_cast<int64_t>(source.size()) != tensor.size()) return std::nullopt;
  StridedOrder order;
  for (size_t i = 0; i < factor_sizes->size(); ++i) order.add((*factor_sizes)[i], (*strides)[i]);
  return LogicalTensor{extents[0], extents[1], extents[2], extents[3], order.of(source)};
}

std::optional<std::vector<double>> broadcast_to(const Tensor& tensor, const Dims& dims) {
  const Dims& own = tensor.dims();
  if (own.size() > dims.size()) return std::nullopt;
  StridedOrder order;
  const size_t missing = dims.size() - own.size();
  int64_t stride = tensor.size();
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    const int64_t extent = axis < missing ? 1 : own[axis - missing];
    if (extent != 1 && extent != dims[axis]) return std::nullopt;
    if (axis >= missing && extent > 0) stride /= extent;
    order.add(dims[axis], extent == 1 ? 0 : stride);
  }
  const std::vector<double> source = numbers_of(tensor);
  if (static_cast<int64_t>(source.size()) != tensor.size() || source.empty()) return std::nullopt;
  return order.of(source);
}

}  // namespace attn_opt
