// Back end: writes an Sdpa as a call of a local function LocalAttention[GQA][SW]_toTYPE of the domain "intermediate".
//
//   inputs  query (B, Hq, L, D), keys (B, Hkv, S, D), values (B, Hkv, S, Dv), mask, scale_sqrt [1]
//           with GQA also expand_shape [5] and gqa_shape [4], which repeat the heads of keys and values
//   SW      the mask is true where a key is hidden ("not_mask"); else where it is kept
//   TYPE    the number of the element type: 1 float, 10 float16, 11 double
//
// Names, inputs and bodies are those of yobx's FunctionAttention patterns.
#pragma once

#include "attn_opt/internal/emit.h"

namespace attn_opt {

inline constexpr const char* kLocalAttentionDomain = "intermediate";

/// Misses: "stage.opset" (below 18), "stage.mask" (no single mask of -inf), "stage.scores" (what the function does not do),
/// "stage.name" (the model has another function of that name), "emit.*".
Matched<Emission> emit_local_function(const Match& match, MatchContext& context, const SharedNodes& shared);

}  // namespace attn_opt
