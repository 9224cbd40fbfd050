// The sum of each row, in whatever words, as a divisor.
//
//   ReduceSum(e)      ReduceL1(e)      S * ReduceMean(e)      e times ones      Einsum("bhij->bhi", e)      and those of
//   row_words.h
//
// where no e is negative; also times a number in whatever words, as Reciprocal(t), 1 / t or t^-1. A sum t of 0 may be another
// number:
//
//   Where(t > 0, t, 1)      Where(t == 0, 1, t)      t + Cast(t == 0)      Max(t, 1e-3)      Clip(t, 1e-3)      t + 1e-9
//
// Exponentials of a number for each row, and numbers, may be added to the sum, in whatever words: t + Exp(x), t + 1, t - -1.
#pragma once

#include <optional>
#include <vector>

#include "attn_opt/pattern.h"
#include "patterns/softmax/row_reduction.h"

namespace attn_opt {

/// What sums may be bounded below by that the largest of their exponentials, where it is taken for 1, is never as low as.
inline constexpr double kMostBound = 0.1;

/// What was added to a sum of exponentials.
struct AddedToSum {
  Value* value = nullptr;  ///< exponentials; null: NUMBER
  double number = 0;
  std::vector<int> axes;  ///< of the rows, in which those of what it was added to lie; less than 0: of size 1
  double raised = 0;      ///< what their exponents are less by than where all is multiplied with the factor of the sum
};

struct RowSum {
  RowReduction rows;
  double factor = 1;                      ///< what the sum is multiplied by
  bool is_never_zero = false;             ///< a sum of 0 is another number: what is divided by it is 0, being terms of that sum
  bool is_of_exponents = false;           ///< a ReduceLogSumExp makes it, which lowers each row by its largest and back
  bool is_absolute = false;               ///< it may be that of what is below 0, too
  bool is_inexact = false;                ///< which small sums are, too
  double bound = 0;                       ///< what these are, if none is less
  std::optional<AddedToSum> little = {};  ///< what makes them so, if it is added
  Value* is_positive = nullptr;           ///< the booleans that a sum that is never 0 was selected by; null if others were
  std::vector<AddedToSum> others = {};
};

/// What VALUE, or 1 / VALUE if INVERSE, has for rows of RANK axes, none of whose elements is negative; nullopt if that is no
/// sum of them. What is made for it stands above READER.
std::optional<RowSum> row_sum(Value& value, bool inverse, size_t rank, Node& reader, MatchContext& context);

/// What FACTOR times LOG is the logarithm of, in the same words; also ReduceLogSum(e).
std::optional<RowSum> row_sum_of_log(Value& log, double factor, size_t rank, Node& reader, MatchContext& context);

}  // namespace attn_opt
