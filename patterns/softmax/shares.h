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
/// How many axes of TERMS, which READ says, lie behind the one that SUM adds up, of TERMS or of the same in other words. TERMS
/// divided by SUM are so many TIMES the shares; null: once.
std::optional<size_t> summed_axis(const RowSum& sum, Value& terms, const Weights& read, bool swapped, Node& node,
                                  MatchContext& context, double* times = nullptr);
/// The softmax along the axis KEYS before the last of WEIGHTS, divided by their SUM; nullopt if that may be as small as what is
/// added to it.
std::optional<SoftmaxSite> softmax_over(const RowSum& sum, size_t keys, const Weights& weights, Node& node,
                                        MatchContext& context);
/// What alone is made of MADE, if that leaves of it what WEIGHTS are left of their core, and else 0; null if it does not.
Value* masked_alike(Value& made, const Weights& weights, MatchContext& context);
/// TERMS, which READ says, divided by SUM, of what NODE makes: a number of times the softmax.
std::optional<SoftmaxSite> share(Value& terms, const Weights& read, const RowSum& sum, Node& node, MatchContext& context);

}  // namespace attn_opt
