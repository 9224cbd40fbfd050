// Products of attention that are read by letters, one for each axis: Einsum, a sum of an elementwise product, and a MatMul
// whose axes lie otherwise than MatMuls of attention have them.
//
//   ReduceSum(Mul(p, v), 1)  =>  "ab.,abc->ac"      ReduceMean(Mul(q, k), -1)  =>  1 / D times "abc,adc->abd", of D features
//
// What has no letter for the queries has one query.
#pragma once

#include "patterns/products/products.h"

namespace attn_opt {

/// Misses: those of unread_letters(); "not-attention" for a linear layer of one query.
Matched<ScoreProduct> lettered_score_product(Node& product, const ScoreLayout& layout, MatchContext& context);
Matched<ValueProduct> lettered_value_product(Node& product, Value& probabilities, MatchContext& context,
                                             std::optional<size_t> head_axes);

}  // namespace attn_opt
