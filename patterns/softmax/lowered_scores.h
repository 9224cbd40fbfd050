// What exponentials are of, as scores less a number for each row.
//
//   x - m      -(m - x)      -1 * m + x      x / 2 - m / 2      x - (m + 3)
#pragma once

#include <vector>

#include "attn_opt/pattern.h"
#include "patterns/scores/score_form.h"
#include "patterns/softmax/exponentials.h"

namespace attn_opt {

using LinearTerms = std::vector<Addend>;

/// What FACTOR times VALUE adds up, each value once.
LinearTerms linear_terms_of(Value& value, double factor, Facts& facts);
/// True if ONE and OTHER add up the same values as often, but for rounding.
bool are_same_terms(const LinearTerms& one, const LinearTerms& other);
/// The same of values that the same is computed for (alike.h).
bool compute_same_terms(const LinearTerms& one, LinearTerms other, Facts& facts);

/// FACTOR times (SCORES less LOWERED_BY), plus NUMBER.
struct LoweredScores {
  Value* scores = nullptr;
  Value* lowered_by = nullptr;  ///< one number along the keys; null if there is none
  double factor = 1, number = 0;
};

/// POWER, whose keys lie along the axis KEYS before the last. What is made for it stands above READER.
LoweredScores lowered_scores(const Exponent& power, size_t keys, Node& reader, MatchContext& context);

/// FACTOR times (MINUEND less SUBTRAHEND).
struct Difference {
  Value* minuend = nullptr;
  Value* subtrahend = nullptr;
  double factor = 1;
};

/// So many TIMES VALUE as differences of values that it is made of, in every way in which one term is subtracted from the
/// others.
std::vector<Difference> differences_in(Value& value, double times, Facts& facts);

}  // namespace attn_opt
