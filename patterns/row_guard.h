// Guards behind a softmax: what gives rows without any key the probability 0 instead of NaN.
//
//   Where(IsNaN(p), 0, p)                        NaN of any origin becomes 0
//   Where(ReduceMax(m, -1) == -inf, 0, p)        rows in which M, what was added to the scores, is -inf throughout
#pragma once

#include <optional>
#include <vector>

#include "attn_opt/miss.h"
#include "attn_opt/pattern.h"
#include "patterns/readers.h"

namespace attn_opt {

struct RowGuard {
  Node* node = nullptr;           ///< the Where
  Value* row_maximum_of = nullptr;  ///< null: NaN is tested for
};

/// The guard of PROBABILITIES, one of their READERS; nullopt if there is none.
std::optional<RowGuard> row_guard(const Readers& readers, Value& probabilities, Facts& facts);

/// True for a reader of probabilities that is GUARD or belongs to what it compares with.
bool belongs_to_guard(const Reader& reader, const Node& guard);

enum class GuardMeaning {
  kNothing,    ///< no row is -inf throughout
  kEmptyRows,  ///< rows that the terms leave no key
  kScores,     ///< rows in which all scores are -inf
};

/// What a guard tests where TERMS, outermost first, were added to scores that became the SOFTMAX_INPUT. Miss
/// "probabilities.guard": TESTED is not the sum of the terms.
Matched<GuardMeaning> meaning_of_guard(const RowGuard& guard, Value& softmax_input, const std::vector<ScoreTerm>& terms,
                                       Facts& facts);

}  // namespace attn_opt
