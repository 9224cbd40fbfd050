// Sizes of Q, K, V and the mask where they broadcast against each other, which the operator does not do as the model's products
// and sums do: it takes no batch, heads, queries or keys of 1 beside others.
#pragma once

#include "src/emit/operands.h"

namespace attn_opt {

/// What ONE and OTHER, which broadcast, come to: their maximum where both are names that a caller may give different sizes. A
/// size that the model computes is what its exporter took for the same as ONE, which the facts list as an assumption; where
/// they may assume nothing it may be the larger.
Dim joint_size(const Dim& one, const Dim& other, const Facts& facts);

/// Makes site.scores (B, Hq, L, S) of what the operands of PLAN and MASK, if there is one, have together, and expands the
/// operands to it. Misses "emit.shape" (no value has such a size), "emit.past" and "emit.form" (what has a past, or is 3-D,
/// cannot be expanded).
Matched<void> join_sizes(const WritingPlan& plan, const Placed* mask, Operands& operands, Site& site);

}  // namespace attn_opt
