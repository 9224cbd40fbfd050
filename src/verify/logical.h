// Tensors brought into the order batch, head, row, feature, whatever the layout they have in the model.
#pragma once

#include <optional>
#include <vector>

#include "src/verify/sizes.h"

namespace attn_opt {

/// A tensor of floats in double as (outer, rows, features), where outer is batch times heads.
struct LogicalTensor {
  int64_t outer = 0, rows = 0, features = 0;
  std::vector<double> values;
};

/// TENSOR's elements in double; empty if it is not numeric.
std::vector<double> numbers_of(const Tensor& tensor);

/// TENSOR, whose axes lie as MAP says; repeated factors are repeated. nullopt if MAP and TENSOR do not fit.
std::optional<LogicalTensor> to_logical(const Tensor& tensor, const AxisMap& map, const SizeAssignment& sizes);

/// TENSOR broadcast to DIMS, row-major; nullopt if it does not broadcast.
std::optional<std::vector<double>> broadcast_to(const Tensor& tensor, const Dims& dims);

}  // namespace attn_opt
