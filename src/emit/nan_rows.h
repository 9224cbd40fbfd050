// A guard that makes NaN 0, where nothing is assumed of the scores: it is written again, behind the node.
//
//   Y = Where(IsNaN(P), 0, P) V    =>    A = Attention(Q, K, V, mask);  Y = Where(IsNaN(A), 0, A)
//
// A row of P that is NaN makes its row of A NaN. What is NaN or infinite in V makes NaN of Y in the model and 0 here.
#pragma once

#include "src/emit/site.h"

namespace attn_opt {

/// True if SITE's guard is to be written so: SDPA lists its "scores-finite" for the guard alone, ACCEPTED does not have it, and
/// the node's scores overflow where the model's do. Masks must be added then, as they are in the model.
bool writes_nan_guard(const Sdpa& sdpa, const AcceptedAssumptions& accepted, const Site& site);

/// Y with the guard behind it.
Value* with_nan_zero(Value* y, Site& site);

/// Says in CONDITIONS what holds of scores and of V behind with_nan_zero().
void enter_nan_guard(std::vector<Precondition>& conditions);
/// Says in CONDITIONS what holds of V where rows without a key are made 0 behind the node.
void enter_row_guard(std::vector<Precondition>& conditions);

/// Enters in CONDITIONS that a causal GroupQueryAttention, which is written for SDPA, hides NaN that the model shows.
void enter_unseen_keys(const Sdpa& sdpa, std::vector<Precondition>& conditions);

}  // namespace attn_opt
