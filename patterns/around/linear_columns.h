// A value as sums of the columns of another one, X, each times a column of a factor:
//
//   x * cos + Concat(-x2, x1) * sin      column j is  x[j] * cos[j] - x[j + half] * sin[j]   in the first half
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "patterns/around/columns.h"

namespace attn_opt {

/// SIGN times column FROM of X, times FACTOR if it has a value, on the last FACTOR_AXES axes of that.
struct LinearTerm {
  size_t from = 0;
  int sign = 1;
  Column factor = {};
  size_t factor_axes = 1;
};
using LinearColumn = std::vector<LinearTerm>;

/// Reads values as columns of X, whose own are on its last axis. All axes in front of that stay as they are in SHAPE, or become
/// those of RESULT where X is broadcast to them.
class LinearColumns {
 public:
  LinearColumns(Value& x, const Shape& shape, const Shape& result, Facts& facts)
      : x_(x), shape_(shape), result_(result), facts_(facts) {}

  /// One for each column of VALUE; empty if it is anything else.
  const std::vector<LinearColumn>& of(Value& value);

 private:
  using Columns = std::vector<LinearColumn>;

  Columns found(Value& value);
  Columns sum(const Node& node);
  /// How many axes hold VALUE's columns; nullopt where those in front are others than X's.
  std::optional<size_t> axes_of(const Value& value);
  /// Their sizes.
  std::optional<Dims> axes_sizes(const Value& value);
  Columns product(const Node& node, size_t axes);
  Columns moved(const Value& value);

  Value& x_;
  const Shape &shape_, &result_;
  Facts& facts_;
  int depth_ = 0;
  std::map<const Value*, Columns> known_;
};

}  // namespace attn_opt
