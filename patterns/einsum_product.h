// Einsum read as one of attention's products: roles of axes come from the letters of its equation.
#pragma once

#include "patterns/products.h"

namespace attn_opt {

/// Misses: "product.einsum".
Matched<ScoreProduct> einsum_score_product(Node& product, const ScoreLayout& layout, MatchContext& context);
Matched<ValueProduct> einsum_value_product(Node& product, Value& probabilities, MatchContext& context);

}  // namespace attn_opt
