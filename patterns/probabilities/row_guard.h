// Guards behind a softmax: what gives rows without any key the probability 0 instead of NaN.
//
//   Where(IsNaN(p), 0, p), Where(p == p, p, 0)   NaN of any origin becomes 0; Where(sum(p) > 0, p, 0)
//   Where(ReduceMax(m, -1) == -inf, 0, p)        rows in which M, what was added to the scores, is -inf throughout (row_test.h)
//   Where(m, 0, p), Mul(Cast(not m), p)          keys that M masked in the scores too
#pragma once

#include <optional>
#include <vector>

#include "attn_opt/miss.h"
#include "attn_opt/pattern.h"
#include "patterns/probabilities/row_test.h"
#include "patterns/readers.h"

namespace attn_opt {

struct RowGuard {
  Node* node = nullptr;         ///< the Where or Mul
  std::optional<RowTest> test;  ///< of rows
  Value* mask = nullptr;        ///< neither: NaN is tested for
  bool keeps = false;           ///< MASK is true for what stays as it is
  Shape frame = {};             ///< shape of what MASK is laid over, as that lies; empty where it is not known
  bool hides_nan = false;       ///< of any origin, too: by a guard in front of it

  /// True if it asks each probability by itself: wherever its axes lie.
  bool asks_each() const { return !test && !mask; }
};

/// The guard of PROBABILITIES, whose keys lie KEYS_FROM_LAST, one of their READERS; nullopt if there is none.
std::optional<RowGuard> row_guard(const Readers& readers, Value& probabilities, size_t keys_from_last, Facts& facts);

/// The Where or Mul among READERS that leaves PROBABILITIES, whose keys lie KEYS_FROM_LAST, as they are, NaN too; null if none
/// does.
///
///   Where(sum(p) == 0, 0, p)  =>  p      p * Cast(sum(p) > 0)  =>  p      p * Cast(not IsNaN(p))  =>  p
Node* idle_guard(const Readers& readers, Value& probabilities, size_t keys_from_last, Facts& facts);

/// BEFORE and, behind it, GUARD, as one: what makes NaN 0 in front of another. Nullopt if they are more.
std::optional<RowGuard> joined(const RowGuard& before, RowGuard guard);

/// True for a reader of probabilities that is GUARD or belongs to what it compares with.
bool belongs_to_guard(const Reader& reader, const Node& guard, Facts& facts);

/// True if READERS are more than GUARD and what belongs to it.
bool others_read(const Readers& readers, const Node& guard, Facts& facts);

/// The Where among READERS that makes infinities of one of PROBABILITIES finite, which they never are: of nan_to_num. Null if
/// there is none. A copy must be given as what it copies.
Node* infinity_guard(const Readers& readers, const std::vector<Value*>& probabilities, Facts& facts);

/// The mask among TERMS, outermost first, that GUARD repeats, which now reads what GUARD reads; null if there is none.
ScoreTerm* masked_again(const RowGuard& guard, std::vector<ScoreTerm>& terms, MatchContext& context);

enum class GuardMeaning {
  kNothing,    ///< no row is -inf throughout
  kEmptyRows,  ///< rows that the terms leave no key
  kScores,     ///< rows in which all scores are -inf
};

/// What a guard that asks no scores tests where TERMS, outermost first, were added to them. Miss "probabilities.guard": TESTED
/// is not the sum of the terms.
Matched<GuardMeaning> meaning_of_guard(const RowGuard& guard, const std::vector<ScoreTerm>& terms, Facts& facts);

}  // namespace attn_opt
