// Integers that follow from where an element stands in its tensor, and truths about them.
//
// Axes are counted from the last, as broadcasting aligns them: index 0 is that of the last axis.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "attn_opt/dim.h"

namespace attn_opt {

/// OFFSET + the sum of FACTORS[a] times the index of axis a.
struct IndexForm {
  std::vector<int64_t> factors;  ///< no zeros at the end
  Dim offset;

  int64_t factor(size_t axis) const { return axis < factors.size() ? factors[axis] : 0; }
  bool is_one_number() const { return factors.empty(); }
  void set_factor(size_t axis, int64_t factor);
  bool operator==(const IndexForm& other) const = default;
};

/// ONE + TIMES * OTHER; nullopt where a factor overflows.
std::optional<IndexForm> sum(const IndexForm& one, const IndexForm& other, int64_t times = 1);

/// FORM where index I of AXIS is START + STEP * I; nullopt where a factor overflows.
std::optional<IndexForm> substituted(const IndexForm& form, size_t axis, const Dim& start, int64_t step);

/// FORM without the axes of SHAPE that have one element: their index is 0.
IndexForm without_single_axes(IndexForm form, const Shape& shape);

/// Whether FORM >= 0 for every index in SHAPE, or for none; nullopt if neither is proven.
std::optional<bool> is_never_negative(const IndexForm& form, const Shape& shape);

}  // namespace attn_opt
