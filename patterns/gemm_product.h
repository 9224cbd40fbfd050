// Gemm read as one of attention's products: attention of one head without a batch.
#pragma once

#include "patterns/products.h"

namespace attn_opt {

/// Misses: "product.gemm", "product.unknown-rank". PROBABILITIES: which operand they are.
Matched<ScoreProduct> gemm_score_product(Node& product, bool transposed, MatchContext& context);
Matched<ValueProduct> gemm_value_product(Node& product, size_t probabilities, MatchContext& context);

}  // namespace attn_opt
