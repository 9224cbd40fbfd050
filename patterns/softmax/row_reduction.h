// A number for each row: its sum or its maximum, with the row's axis kept, put back, or repeated; the rows may have been
// transposed before or after, and cast from one floating type to another.
//
//   ReduceMax<keepdims=0> ─ Max(-inf) ─ Transpose ─ Reshape ─ Expand      as jax.nn.softmax is exported
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "attn_opt/matcher.h"

namespace attn_opt {

/// VALUE before it was cast from one floating type to another: a sum or a maximum may be taken in a wider one.
Value& before_float_casts(Value& value, Facts& facts);

/// VALUE before its elements were moved, repeated or cast from one floating type to another.
Value& unmoved(Value& value, Facts& facts);

/// What a value holds a number of each row of, VALUE, and which axis of the rows each axis of that is.
struct RowReduction {
  /// The axis that was taken away, wherever it lies in the rows.
  static constexpr int kTaken = -2;

  Value* value = nullptr;
  std::vector<int> axes;
  const Node* node = nullptr;  ///< that reduces
  /// No number is less than this, whatever the row holds; -inf: the number of each row is its own.
  double bound = -std::numeric_limits<double>::infinity();
};

/// VALUE, which broadcasts to RANK axes, and which of these each axis of it is: less than 0 where it is of size 1. No axes
/// where they are not known.
RowReduction placed_in(Value& value, size_t rank, Facts& facts);
/// PLACED before its elements were moved or repeated.
RowReduction before_moves(RowReduction placed, Facts& facts);

/// What the elements of a value are made of one by one; null if it is made otherwise.
using ElementStep = std::function<Value*(Value&)>;

/// AFTER, which a node makes, before that took an axis of it away; nullopt if it takes none.
using TakenAxis = std::function<std::optional<RowReduction>(const Node&, const RowReduction& after)>;

/// AFTER, what NODE makes, a Reduce* of one axis, before it.
std::optional<RowReduction> before_reduction(const Node& node, const RowReduction& after, Facts& facts);

/// The rows, of RANK axes, that VALUE holds a number for, of which a node has TAKEN an axis: through NEXT and what moves or
/// repeats numbers.
std::optional<RowReduction> reduction_in(Value& value, size_t rank, const TakenAxis& taken, const ElementStep& next,
                                         Facts& facts);

/// How many axes of TERMS lie behind the one that REDUCTION, if it is of these, took away; nullopt if it is not. SWAPPED: the
/// value read for it lies as TERMS with its last two axes swapped does, and so is the axis counted.
std::optional<size_t> axis_in(const RowReduction& reduction, Value& terms, bool swapped, Facts& facts);

/// How many axes of TERMS lie behind the one that VALUE holds OP_TYPE (ReduceSum, ReduceMax, ...) of: it broadcasts to them
/// with the row's number in each of its elements. Nullopt if it holds anything else.
std::optional<size_t> reduced_axis_of(const std::string& op_type, Value& value, Value& terms, Facts& facts);

/// What the largest of each row of RANK axes that MAXIMUM holds is no less than, whatever the row holds: its own where that is
/// -inf.
double bound_of_maximum(Value& maximum, size_t rank, Facts& facts);

/// Fits OP_TYPE of the rows, along the axis BEFORE_LAST the last, of what TERMS holds by then.
Matcher reduction_of_rows(const std::string& op_type, Value* const* terms, size_t before_last);

/// The rows, along the axis BEFORE_LAST the last of RANK, that VALUE holds a number of OP_TYPE for; null if there are none, or
/// if they lie otherwise. A number that bounds the largest of them from below is looked through unless IS_EXACT.
Value* reduced_rows(const std::string& op_type, Value& value, size_t rank, Facts& facts, size_t before_last = 0,
                    bool is_exact = false);

}  // namespace attn_opt
