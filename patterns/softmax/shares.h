// Weights divided by their sum: a softmax.
//
//   e / sum(e)      (m * e) / sum(m * e)      m * (e / sum(m * e))      e / (sum(e) + Exp(z))      c * e / sum(e)
//
// where e are exponentials, or the probabilities of another softmax, with masks and a number (weights.h), and the sum stands in
// any words (row_sum.h).
#pragma once

#include <optional>

#include "patterns/scores/score_form.h"
#include "patterns/softmax/row_sum.h"
#include "patterns/softmax/softmax_anchor.h"
#include "patterns/softmax/weights.h"

namespace attn_opt {

/// The scores that MASKED, of which a maximum was taken, are where no mask hides them, and these masks; nullopt if they are
/// others.
std::optional<ScoreForm> hidden_in(Value& masked, Value& scores, Node& reader, MatchContext& context);
/// The axis that a sum of terms adds up.
struct SummedAxis {
  size_t behind = 0;  ///< axes of the terms that lie behind it
  double times = 1;   ///< the terms divided by the sum are so many times the shares
};

/// What SUM adds up of TERMS, which READ says, or of the same in other words.
std::optional<SummedAxis> summed_axis(const RowSum& sum, Value& terms, const Weights& read, bool swapped, Node& node,
                                      MatchContext& context);
/// The softmax of WEIGHTS along KEYS, divided by their SUM; nullopt if that may be as small as what is added to it.
std::optional<SoftmaxSite> softmax_over(const RowSum& sum, const SummedAxis& keys, const Weights& weights, Node& node,
                                        MatchContext& context);
/// What alone is made of MADE, if that leaves of it what WEIGHTS are left of their core, and else 0; null if it does not.
Value* masked_alike(Value& made, const Weights& weights, MatchContext& context);
/// TERMS, which READ says, divided by SUM, of what NODE makes: a number of times the softmax.
std::optional<SoftmaxSite> share(Value& terms, const Weights& read, const RowSum& sum, Node& node, MatchContext& context);

/// The exponential NODE makes of SCORES less LOWERED_BY, FACTOR times each.
///
///   exp(a - log(t))  =>  exp(a) / t      exp(a - (m + log(t)))  =>  exp(a - m) / t      exp(log(w) - log(t))  =>  w / t
std::optional<SoftmaxSite> less_logarithm(Value& scores, Value& lowered_by, double factor, Node& node, MatchContext& context);

}  // namespace attn_opt
