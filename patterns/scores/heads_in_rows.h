// Heads that share keys and stand beside the queries in the rows of one product.
//
//   Q (B, Hkv, G * L, D) · K^T (B, Hkv, D, S)  ─ Reshape ─  (B, Hkv * G, L, S)
//   =>  Q (B, Hkv, G, L, D) · K^T (B, Hkv, 1, D, S)  ─ Reshape ─  (B, Hkv * G, L, S)
#pragma once

#include "patterns/scores/score_split.h"

namespace attn_opt {

/// True if the rows of WHOLE, scores, are several heads' of APART, which shares its keys and holds the same elements.
bool holds_heads_in_rows(const Shape& whole, const Shape& apart);

/// The product that TRANSPOSE makes by swapping the last two axes of another: (K Q^T)^T as Q K^T; null if it makes none.
Value* turned_product(Node& transpose, MatchContext& context);

/// What PRODUCT makes with the heads that its rows hold, as SPLIT has them, on an axis of their own; null if it is no MatMul of
/// operands of as many axes, or SPLIT takes no heads out of rows.
Value* product_with_heads_apart(Node& product, const ScoreSplit& split, MatchContext& context);

}  // namespace attn_opt
