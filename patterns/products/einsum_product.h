// Einsum read as one of attention's products: roles of axes come from the letters of its equation.
#pragma once

#include "patterns/products/products.h"

namespace attn_opt {

/// Misses: "product.einsum".
Matched<ScoreProduct> einsum_score_product(Node& product, const ScoreLayout& layout, MatchContext& context);
Matched<ValueProduct> einsum_value_product(Node& product, Value& probabilities, MatchContext& context);

/// What EINSUM makes, if it adds nothing up, as a Mul; null if it is another product.
///
///   Einsum("bhij,bhi->bhij", x, t)  =>  x * Unsqueeze(t)
Value* elementwise_product(Node& einsum, MatchContext& context);

}  // namespace attn_opt
