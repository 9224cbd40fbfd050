// Tensors brought into the order batch, head, row, feature, whatever the layout they have in the model.
#pragma once

#include <optional>
#include <vector>

#include "src/verify/sizes.h"

namespace attn_opt {

/// A tensor of floats in double as (batch, heads, rows, features).
struct LogicalTensor {
  int64_t batch = 0, heads = 0, rows = 0, features = 0;
  std::vector<double> values;
};

/// TENSOR's elements in double; empty if it is not numeric.
std::vector<double> numbers_of(const Tensor& tensor);

/// TENSOR, whose axes lie as MAP says; repeated factors are repeated. An axis of one factor is as long as it is, whatever SIZES
/// take it for: equal sizes may be others in a run. nullopt if MAP and TENSOR do not fit.
std::optional<LogicalTensor> to_logical(const Tensor& tensor, const AxisMap& map, const SizeAssignment& sizes);

/// TENSOR broadcast to DIMS, row-major; nullopt if it does not broadcast.
std::optional<std::vector<double>> broadcast_to(const Tensor& tensor, const Dims& dims);

}  // namespace attn_opt
