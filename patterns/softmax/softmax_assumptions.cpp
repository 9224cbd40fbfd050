#include "patterns/softmax/softmax_assumptions.h"

#include "patterns/preconditions.h"
#include "src/match/facts/empty_rows.h"

namespace attn_opt {

void assume_of_softmax(const SoftmaxSite& softmax, const ScoreWalk& scores, Sdpa& sdpa, Facts& facts) {
  if (scores.hides_infinity) assume_scores_finite("a bound of the scores hides Inf, or a squared difference", sdpa);
  if (softmax.hides_infinity) assume_scores_finite("Sigmoid makes a number of Inf, as softmax does not", sdpa);
  if (scores.caps_in_exp_range) assume("exp-in-range", "the softcap divides exponentials of scores", sdpa);
  const bool may_empty_blocks = !softmax.key_blocks.empty() && !sdpa.guarded && !why_rows_may_be_nan(sdpa, facts).empty();
  const bool may_empty_beside_sinks = !softmax.sinks.empty() && softmax.nan_without_keys && sdpa.terms.size() > 1;
  sdpa.less_others = softmax.is_less_others;
  sdpa.infinity_makes_nan = softmax.pairs_scores || may_empty_blocks || scores.makes_nan_of_infinity || may_empty_beside_sinks;
  if (scores.makes_nan_of_infinity)
    sdpa.preconditions.push_back(
        {"scores-finite", false, "scores of Inf are multiplied with 0, or subtracted from each other", true});
  if (softmax.pairs_scores)
    sdpa.preconditions.push_back({"scores-finite", false, "the difference of two scores of -Inf is NaN", true});
  if (may_empty_blocks)
    sdpa.preconditions.push_back({"scores-finite", false, "a block of keys whose scores are all -Inf makes NaN", true});
  if (may_empty_beside_sinks)
    sdpa.preconditions.push_back({"scores-finite", false, "a row of nothing but -inf is NaN, which has sinks beside it", true});
  if (sdpa.exponent_offset) sdpa.key_blocks = softmax.key_blocks;
  if (softmax.divided && !softmax.normaliser && !sdpa.exponent_offset &&
      facts.type(*softmax.output) == onnx::TensorProto::FLOAT16)
    sdpa.preconditions.push_back(
        {"exp-in-range", false, "float16 holds sums of exponentials, which are divided behind the product"});
}

}  // namespace attn_opt
