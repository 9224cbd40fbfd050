// Sums, means and maxima of rows in other words than those of a Reduce*.
//
//   AveragePool, MaxPool with a window as long as the row      TopK(x, 1)      CumSum(e)[..., -1:]
//   ReduceSum(e cut in front) + e's other columns      Max(ReduceMax(x cut in front), x's other columns)
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "attn_opt/facts.h"
#include "patterns/softmax/row_reduction.h"

namespace attn_opt {

/// What a number is multiplied with that a size of the model makes: a power of it.
class SizeFactor {
 public:
  /// Takes out of what NODE makes, of which some POWER is multiplied, the size n. Returns what is left and sets its power; null
  /// if there is none, or another one already.
  ///
  ///   n * t  =>  t      t / n  =>  t      n / t  =>  t, n being a power of Cast(Gather(Shape(x), 2))
  Value* take_from(const Node& node, double& power, Facts& facts);
  /// Once more with SIZE^POWER; false where that is not of the same size.
  bool multiply(const Dim& size, double power, const Facts& facts);
  bool is_one() const { return power_ == 0; }

 private:
  Dim size_ = 1;
  double power_ = 0;
};

/// AFTER, what NODE makes, a pooling of OP_TYPE whose window is one whole axis, before it.
std::optional<RowReduction> before_pooling(const char* op_type, const Node& node, const RowReduction& after, Facts& facts);

/// AFTER, what NODE makes, the largest of each row by TopK, before it.
std::optional<RowReduction> before_largest(const Node& node, const RowReduction& after, Facts& facts);

/// AFTER, what PRODUCT makes of its operand number AT and ones, before it: sums along the axis that the result has not, taken
/// once or several times.
std::optional<RowReduction> before_product(const Node& product, size_t at, const RowReduction& after, Facts& facts);

/// AFTER, the last of running sums, before they were made.
std::optional<RowReduction> before_running_sum(const RowReduction& after, Facts& facts);

/// Rows in parts side by side along AXIS of them, where the axes of the rows lie at AXES.
struct RowParts {
  std::vector<Value*> parts;
  size_t axis = 0;
  std::vector<int> axes;
};

/// What REDUCED, numbers of parts of rows by OP_TYPE or single columns of them, are of, in each way that there is.
std::vector<RowParts> parts_of_rows(std::span<Value* const> reduced, const char* op_type, const RowReduction& after,
                                    Facts& facts);

}  // namespace attn_opt
