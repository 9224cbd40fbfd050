// The sizes of the scores that a description says.
#pragma once

#include <vector>

#include "attn_opt/internal/sdpa.h"
#include "src/verify/sizes.h"

namespace attn_opt {

Dim rows_of(const Operand& operand);
/// Batch, heads, queries, keys; empty if Q is not known.
std::vector<Dim> sizes_of_scores(const Sdpa& sdpa);
/// 0 if a size is not known.
int64_t number_of_scores(const Sdpa& sdpa, const SizeAssignment& sizes);

/// Scores of a site beyond which other numbers than the model's own are tried first, and draws of few kinds are enough: each
/// takes part of a second.
inline constexpr int64_t kMaxScoresOfOwnNumbers = int64_t{1} << 18;

}  // namespace attn_opt
