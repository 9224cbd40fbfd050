// What must hold for an attention around a softmax to equal the operator.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attn_opt/pattern.h"

namespace attn_opt {

///   scores-finite     a guard, or a Where over the scores, hides NaN and Inf of Q K^T that the operator shows; the maximum of
///                     all scores spreads them
///   rows-keep-a-key   a row without a key is NaN here and 0 in the operator; a fill that does not absorb the scores
///                     gives it other weights
///   exp-in-range      a softmax written out without the row's maximum overflows, or has nothing left to divide by, where
///                     the operator does not
///   scores-above-fill no score is as low as a fill (by who reads the site): a mask is repeated behind the softmax, scores were
///                     shifted before a fill was laid over them, or the fill is written as a lower one
///   scores-within-clamp  scores are clamped at a number that they are not expected to reach
///   biases-small      biases are added to each other before the scores are, or multiplied for themselves: where they keep
///                     keys they are small, or rounding them leaves its trace
///   factors-in-range  a factor of the scores or probabilities that is not small, or not known before a run, is one of Q, K or
///                     V in the operator: they stay in the range of their type
///   sizes-equal       sizes that broadcast against each other are taken for equal
std::vector<Precondition> preconditions_of(const Sdpa& sdpa, MatchContext& context);

/// The precondition "factors-in-range" where FACTOR and SCALES of the scores, or of the probabilities, become factors of
/// OPERAND, which is of TYPE; nullopt if they are small.
std::optional<Precondition> factors_in_range(double factor, const std::vector<TensorScale>& scales, DataType type,
                                             const std::string& operand, Facts& facts);

/// Misses that no assumption covers: "scores.plus-inf", where a bias makes whole rows NaN that a guard then makes 0;
/// "scores.empty-row", where a constant breaks in each run what is assumed of masks.
Matched<void> check_masks(const Sdpa& sdpa, MatchContext& context);

/// The precondition "rows-keep-a-key" where Attention is written for another kernel than it had: that of ONNX Runtime takes the
/// lowest number of a mask for -inf, and adds halves in their own type; nullopt where no row can show it.
std::optional<Precondition> rows_keep_a_key_of_kernel(const Sdpa& sdpa, Facts& facts);

/// True if VALUE holds numbers that are known before a run, all finite.
bool is_known_finite(const Value& value, Facts& facts);

/// Enters the precondition ID in SDPA, which nothing proves; DETAIL says by whom.
void assume(const std::string& id, std::string detail, Sdpa& sdpa);
/// The same of scores-finite, unless SDPA lists it as assumed already.
void assume_scores_finite(std::string detail, Sdpa& sdpa);

}  // namespace attn_opt
