// Integers that follow from where an element stands in its tensor, and from a list of lengths; and truths about them.
//
// Axes are counted from the last, as broadcasting aligns them: index 0 is that of the last axis.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "attn_opt/graph.h"
#include "attn_opt/shape.h"
#include "attn_opt/tensor.h"

namespace attn_opt {

/// TIMES times the element of VALUE, a list, at the index of AXIS.
struct ListedLength {
  static constexpr size_t kNoAxis = SIZE_MAX;  ///< the list has one element

  Value* value = nullptr;  ///< null: there is none
  int64_t times = 0;
  size_t axis = kNoAxis;
  bool operator==(const ListedLength& other) const = default;
};

/// OFFSET + LENGTH + the sum of FACTORS[a] times the index of axis a.
struct IndexForm {
  std::vector<int64_t> factors;  ///< no zeros at the end
  Dim offset;
  ListedLength length = {};

  int64_t factor(size_t axis) const { return axis < factors.size() ? factors[axis] : 0; }
  bool is_one_number() const { return factors.empty() && !length.value; }
  /// The same number everywhere, though perhaps not one known beforehand.
  bool is_everywhere_the_same() const { return factors.empty() && length.axis == ListedLength::kNoAxis; }
  bool depends_on(size_t axis) const { return factor(axis) != 0 || (length.value && length.axis == axis); }
  /// True if the two differ in their offsets at most.
  bool is_parallel_to(const IndexForm& other) const { return factors == other.factors && length == other.length; }
  void set_factor(size_t axis, int64_t factor);
  bool operator==(const IndexForm& other) const = default;
};

/// ONE + TIMES * OTHER; nullopt where a factor overflows, or where they hang on two lists.
std::optional<IndexForm> sum(const IndexForm& one, const IndexForm& other, int64_t times = 1);

/// FORM where index I of AXIS is START + STEP * I; nullopt where a factor overflows or a list would be indexed otherwise.
std::optional<IndexForm> substituted(const IndexForm& form, size_t axis, const Dim& start, int64_t step);

/// FORM without the axes of SHAPE that have one element: their index is 0.
IndexForm without_single_axes(IndexForm form, const Shape& shape);

/// True if TYPE holds all numbers of FORM in SHAPE as they are: computed in it, none is rounded or wraps around. Sizes that are
/// no numbers, and listed lengths, are taken for at most a million.
bool is_held_by(DataType type, const IndexForm& form, const Shape& shape);

/// Whether FORM >= 0 for every index in SHAPE, or for none; nullopt if neither is proven.
std::optional<bool> is_never_negative(const IndexForm& form, const Shape& shape);

}  // namespace attn_opt
