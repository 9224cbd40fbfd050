// Operands that their product broadcasts and the operator would not.
#pragma once

#include "patterns/products/products.h"

namespace attn_opt {

/// QUERY expanded along the leading axes where it has size 1 and KEY has not. What is added stands above READER.
ProductSide broadcast_query(const ProductSide& query, const ProductSide& key, Node& reader, MatchContext& context);

/// OPERAND, K or V, expanded so that its batch is 1 or that of QUERY, and heads of QUERY that share one of its are beside each
/// other: of several axes of batch or heads some may broadcast.
ProductSide broadcast_leading(const ProductSide& operand, const ProductSide& query, Node& reader, MatchContext& context);

/// Repeats heads of KEY that those of QUERY share, or of VALUE that those of OUTPUT do, at READER, where the other has one for
/// each: the operator has as many of K as of V.
void broadcast_heads(ProductSide& key, ProductSide& value, const ProductSide& query, const ProductSide& output, Node& reader,
                     MatchContext& context);

}  // namespace attn_opt
