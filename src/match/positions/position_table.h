// Tensors whose elements follow from where they stand: which of a few numbers an element is, is told by a few
// inequalities of its indices.
#pragma once

#include <span>

#include "attn_opt/tensor.h"
#include "src/match/positions/index_form.h"

namespace attn_opt {

/// Number I of VALUES is that of elements for which condition C holds exactly if bit C of I is set.
struct PositionTable {
  std::vector<IndexForm> conditions;  ///< that the form is not negative; the first factor that is not 0 is positive
  Tensor values;                      ///< of shape (2^conditions)

  static PositionTable of_number(double number, DataType type);
  /// bool: true where FORM >= 0; nullopt where a factor overflows.
  static std::optional<PositionTable> of_condition(const IndexForm& form);
};

/// TABLE in the form that PositionTable asks for, whatever the signs of its conditions' factors; nullopt where one
/// overflows.
std::optional<PositionTable> with_positive_factors(PositionTable table);

/// TABLES with the same conditions, the union of theirs; empty if those are too many.
std::vector<PositionTable> aligned(std::span<const PositionTable> tables);

/// The numbers of TABLE for each set of truths that some element of a tensor of SHAPE may have: conditions that SHAPE
/// decides, or that follow from others, are not free.
struct PossibleValues {
  std::vector<IndexForm> conditions;  ///< those that SHAPE leaves open, without axes of one element
  struct Case {
    uint32_t truths = 0;  ///< bit C: condition C holds
    double value = 0;
  };
  std::vector<Case> cases;
};
PossibleValues possible_values(const PositionTable& table, const Shape& shape);

}  // namespace attn_opt
