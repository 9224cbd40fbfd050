// What the scores of each query are like in one draw: how large, and whether any key is left.
#pragma once

#include <functional>

#include "src/verify/logical.h"

namespace attn_opt {

/// Rows of the scores in the order batch, head, query.
struct ScoreRows {
  int64_t keys = 0;
  double value_magnitude = 1;          ///< largest |V|
  bool values_are_finite = true;       ///< those of V, but for a past
  bool adds_masks = false;             ///< each other: together they may be lower than each is
  std::vector<double> magnitude;       ///< largest score that rounding can matter of, biases included
  std::vector<double> product;         ///< as magnitude, of Q K^T times the scale alone
  std::vector<bool> is_empty;          ///< every key is masked, by -inf or by a fill
  std::vector<bool> is_hidden;         ///< as is_empty, or by a number so low that it is meant as a mask
  std::vector<bool> has_shallow_fill;  ///< some key's score is replaced by a fill that, added, would leave a trace of it
  std::vector<bool> leaves_type;   ///< what is added to every key is so low that with scores it may be below the model's types
  std::vector<bool> reaches_fill;  ///< some keys are masked, and all others have a bias as low as a fill
  std::vector<bool> may_vanish;    ///< finite scores are less by a number that the node does not see: exp() of all may be 0
  std::vector<bool> passes_clamp;  ///< a score may be as large as the model clamps them at, or nearly
  std::vector<bool> leaves_exp_range;  ///< exp() may overflow, or round all of the row to nearly nothing
  std::vector<bool> overflows;         ///< the scores before masks pass the type's range
  std::vector<bool> covers_infinity;   ///< a fill lies over what a bias makes infinite, of which arithmetic on masks makes NaN;
                                       ///< or a score is -Inf, of which the model makes NaN

  size_t size() const { return magnitude.size(); }
};

/// Contents of a value in this draw; null if they are not known.
using ValueContents = std::function<const Tensor*(const Value*)>;

struct RowsRequest {
  const Sdpa& sdpa;
  const SizeAssignment& sizes;
  ValueContents contents;
  DataType type;        ///< that sums of biases are rounded to
  DataType model_type;  ///< the coarsest that the model holds scores in
};

/// Empty (no rows) where the layout of the operands is not known well enough.
ScoreRows score_rows(const RowsRequest& request);

}  // namespace attn_opt
