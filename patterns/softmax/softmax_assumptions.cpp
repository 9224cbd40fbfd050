#include "patterns/softmax/softmax_assumptions.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "attn_opt/internal/mask_contents.h"
#include "patterns/bias_preconditions.h"
#include "patterns/preconditions.h"
#include "patterns/scores/peel_steps.h"
#include "src/io/number_text.h"
#include "src/match/facts/empty_rows.h"

namespace attn_opt {

namespace {

/// Deeper numbers round what is added to them to nothing, logarithms of sums too.
constexpr double kRoundsAway = -1e5;
/// What is no deeper is no mask.
constexpr double kHidesRow = -1000;

/// True if TERM, of SCORES, may lay numbers as deep as DEPTH over all of a row, which are not -inf in the model.
bool may_hide_row(const ScoreTerm& term, const ScoreWalk& scores, double depth, Facts& facts) {
  if (term.kind == ScoreTerm::Kind::kFloor || keeps_first_key(term)) return false;
  if (term.kind != ScoreTerm::Kind::kBias) {
    const auto own = std::ranges::find(scores.terms, term.value, &ScoreTerm::value);
    return own != scores.terms.end() && std::isfinite(own->fill) && own->coefficient * own->fill <= depth;
  }
  const MaskContents contents = mask_contents(*term.value, facts);
  return contents.may_hold_lowest || term.coefficient * contents.least <= depth;
}

/// ID is assumed of SDPA, whatever was said of it.
void assume_after_all(const char* id, std::string detail, Sdpa& sdpa) {
  std::erase_if(sdpa.preconditions, [&](const Precondition& condition) { return condition.id == id; });
  sdpa.preconditions.push_back({id, false, std::move(detail)});
}

/// The model adds biases to scores that are less by a number of their row, the operator to the scores.
void assume_of_lowered_scores(const ScoreWalk& scores, Sdpa& sdpa, Facts& facts) {
  if (!scores.adds_to_lowered) return;
  if (const ScoreTerm* large = large_bias(sdpa, facts))
    assume_after_all("biases-small",
                     "'" + large->value->name + "' may be large, and is added to scores less a number of their row", sdpa);
  const auto hides = [&](const ScoreTerm& term) { return is_bias(term) && may_hide_row(term, scores, kHidesRow, facts); };
  if (const auto hidden = std::ranges::find_if(sdpa.terms, hides); hidden != sdpa.terms.end())
    assume_after_all("rows-keep-a-key",
                     "'" + hidden->value->name + "' rounds rows that are less a number of their own otherwise", sdpa);
}

/// What the model makes of rows of nothing but deep numbers, and the operator does not.
void assume_of_hidden_rows(const SoftmaxSite& softmax, const ScoreWalk& scores, Sdpa& sdpa, Facts& facts) {
  const auto any_hides = [&](double depth) {
    return std::ranges::any_of(sdpa.terms, [&](const ScoreTerm& term) { return may_hide_row(term, scores, depth, facts); });
  };
  const auto leaves = std::ranges::find_if(sdpa.terms, [&](const ScoreTerm& term) {
    return may_leave_type_lowered(term, mask_contents(*term.value, facts), sdpa.type);
  });
  if (leaves != sdpa.terms.end())
    assume_after_all("rows-keep-a-key",
                     "'" + leaves->value->name + "' is multiplied once its rows are lowered by their largest", sdpa);
  else if (softmax.is_weighed && any_hides(kHidesRow))
    assume_after_all("rows-keep-a-key", "a row of deep numbers is weighed by what the softmax is multiplied with", sdpa);
  else if (softmax.is_less_log_sum && any_hides(kRoundsAway))
    assume_after_all("rows-keep-a-key", "the logarithm of a sum is lost beside deep numbers", sdpa);
}

}  // namespace

void assume_of_softmax(const SoftmaxSite& softmax, const ScoreWalk& scores, Sdpa& sdpa, Facts& facts) {
  if (scores.hides_infinity) assume_scores_finite("a bound of the scores hides Inf, or a squared difference", sdpa);
  if (scores.cancels_norms)
    assume_after_all("biases-small", "the product of Q and K stands for distances, which it is larger than far from 0", sdpa);
  if (softmax.hides_infinity) assume_scores_finite("Sigmoid makes a number of Inf, as softmax does not", sdpa);
  if (softmax.hides_nan) assume_scores_finite("exponentials that are NaN are made 0", sdpa);
  if (scores.caps_in_exp_range) assume("exp-in-range", "the softcap divides exponentials of scores", sdpa);
  const bool may_empty_blocks = !softmax.key_blocks.empty() && !sdpa.guarded;
  const bool may_empty_beside_sinks = !softmax.sinks.empty() && softmax.nan_without_keys && sdpa.terms.size() > 1;
  sdpa.less_others = softmax.is_less_others;
  sdpa.less_row_numbers = sdpa.exponent_offset && (softmax.lowered_by || scores.lowered);
  const bool adds_infinities = scores.makes_nan_of_infinity || scores.sums_operands;
  sdpa.infinity_makes_nan = softmax.pairs_scores || may_empty_blocks || adds_infinities || may_empty_beside_sinks;
  if (adds_infinities && (softmax.guards_empty_rows || sdpa.guarded))
    assume_scores_finite("rows to which -inf is added are made 0", sdpa);
  else if (adds_infinities)
    sdpa.preconditions.push_back(
        {"scores-finite", false, "scores of Inf are multiplied with 0, or subtracted from each other", true});
  if (scores.sums_operands && factors_in_range(2, {}, sdpa.type, "Q or K", facts))
    assume_after_all("factors-in-range", "Q or K is a sum that the model does not make", sdpa);
  if (softmax.pairs_scores)
    sdpa.preconditions.push_back({"scores-finite", false, "the difference of two scores of -Inf is NaN", true});
  if (may_empty_blocks)
    sdpa.preconditions.push_back({"scores-finite", false, "a block of keys whose scores are all -Inf makes NaN", true});
  if (has_finite_bound(softmax, facts) && !softmax.guards_empty_rows)
    sdpa.preconditions.push_back(
        {"scores-finite", false, "rows whose scores are all below " + number_text(softmax.bound) + " have no weights", true});
  if (!scores.tensor_scales.empty())
    sdpa.preconditions.push_back(
        {"scores-finite", false,
         "'" + scores.tensor_scales.front().value->name + "' is a factor of Q or K, not of scores that left their range",
         true});
  if (may_empty_beside_sinks)
    sdpa.preconditions.push_back({"scores-finite", false, "a row of nothing but -inf is NaN, which has sinks beside it", true});
  if (sdpa.exponent_offset) sdpa.key_blocks = softmax.key_blocks;
  assume_of_lowered_scores(scores, sdpa, facts);
  assume_of_hidden_rows(softmax, scores, sdpa, facts);
  if (softmax.divided && !softmax.normaliser && !sdpa.exponent_offset &&
      facts.type(*softmax.output) == onnx::TensorProto::FLOAT16)
    sdpa.preconditions.push_back(
        {"exp-in-range", false, "float16 holds sums of exponentials, which are divided behind the product"});
}

Matched<void> check_lowering(const SoftmaxSite& softmax, const Sdpa& sdpa, Facts& facts) {
  const auto hides_keys = [&](const ScoreTerm& term) {
    if (term.kind != ScoreTerm::Kind::kBias) return term.coefficient * term.fill <= kHighestMaskFill;
    const MaskContents held = mask_contents(*term.value, facts);
    const bool is_known = !held.may_hold_nan;
    return is_known && (held.may_hold_minus_inf || held.may_hold_lowest || held.least <= kHighestMaskFill);
  };
  const auto term = softmax.is_less_others ? std::ranges::find_if(sdpa.terms, hides_keys) : sdpa.terms.end();
  if (term == sdpa.terms.end()) return {};
  return missed("softmax.less-mean", softmax.lowered_by->producer, "'" + term->value->name + "' may hide keys");
}

}  // namespace attn_opt
