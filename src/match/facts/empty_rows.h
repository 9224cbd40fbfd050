// Rows of scores that masks leave no key.
#pragma once

#include <string>

#include "attn_opt/facts.h"
#include "attn_opt/internal/mask_contents.h"
#include "attn_opt/internal/sdpa.h"

namespace attn_opt {

/// The part of TERM's coefficient that takes lowest numbers out of their type.
double before_lowering(const ScoreTerm& term);
/// True if rows of TERM are less by their largest before more than 1 multiplies them: one of a deep number alone is 0 there,
/// and weighs all keys alike, however deep what is written becomes.
bool is_multiplied_lowered(const ScoreTerm& term);
/// True of such a bias of CONTENTS in TYPE that holds no deep number but the lowest: bounded by that, it says the same.
bool is_held_in_type(const ScoreTerm& term, const MaskContents& contents, DataType type);
/// True of such a bias of CONTENTS that is not, and may leave TYPE.
bool may_leave_type_lowered(const ScoreTerm& term, const MaskContents& contents, DataType type);

/// True if TERM keeps the first key of every row.
bool keeps_first_key(const ScoreTerm& term);
/// True if TERM takes nothing off the first key of any row: it keeps_first_key(), or a Pad puts zeros in front of the others'
/// bias.
bool is_zero_at_first_key(const ScoreTerm& term, Facts& facts);
/// The type whose range the scores, with masks added, have on their way to the softmax.
DataType range_of_scores(const Sdpa& sdpa);
/// True if a floor lies above all masks: every -inf below it becomes finite.
bool has_floor(const Sdpa& sdpa);
/// Why all of a row may be -inf, which makes it NaN unless it is guarded; empty if it cannot.
std::string why_rows_may_be_nan(const Sdpa& sdpa, Facts& facts);

}  // namespace attn_opt
