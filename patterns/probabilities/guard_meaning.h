// A site read around its softmax, and what masks and guards behind the softmax mean to it.
#pragma once

#include <optional>

#include "patterns/probabilities/probability_walk.h"
#include "patterns/products/products.h"
#include "patterns/scores/score_walk.h"
#include "patterns/softmax/softmax_anchor.h"

namespace attn_opt {

struct Reading {
  ProbabilityWalk probabilities;
  ScoreLayout softmax_layout;  ///< of what the softmax makes
  ScoreWalk scores;
  ScoreProduct score_product;
  ValueProduct value_product;
  GuardMeaning guard = GuardMeaning::kNothing;
  std::string overlooked = {};       ///< which rows GUARD makes 0 though their scores may not be finite; empty: none
  bool deepens_fill = false;         ///< a term has -inf for masked keys, which the model's scores do not
  std::optional<double> fill_above;  ///< that masked keys have until they are masked again behind the softmax
};

/// What READING's guard makes of rows of SOFTMAX, of LAYOUT; one that tests for something else becomes a step. Misses:
/// "probabilities.mask", "probabilities.guard".
Matched<GuardMeaning> read_guard(Reading& reading, const ScoreLayout& layout, const SoftmaxSite& softmax,
                                 MatchContext& context);

/// Enters what SDPA assumes where the guard of READING hides NaN.
void assume_of_guard(const Reading& reading, Sdpa& sdpa);

/// The fill that masked keys have in the model beside scores that are others in the operator; nullopt if there is none.
std::optional<double> fill_that_scores_stay_above(const Reading& reading);

}  // namespace attn_opt
