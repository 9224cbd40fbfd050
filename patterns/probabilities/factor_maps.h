// Where the factors of batch, heads, queries and keys lie in probabilities, in V and in Y, as one list of factors; and what
// broadcasts to one of these as it broadcasts to another.
//
//   h of (1, H, 1, 1), P of (B, H, L, S)        beside V of (B, S, H, D): (1, 1, H, 1)
//                                               beside Y of (B * H, L, D): (B * H, 1, 1), copied for each batch
#pragma once

#include <optional>
#include <vector>

#include "attn_opt/pattern.h"
#include "patterns/products/products.h"

namespace attn_opt {

/// A value and its axes, of which the leading ones have the role of the batch, heads among them. The features of probabilities
/// are the keys.
struct FactorSide {
  Value* value = nullptr;
  AxisMap axes;
};

/// Both operands and the result of a product with V, over the same leading factors.
struct FactorMaps {
  FactorSide probabilities, values, output;
};

/// The maps of PRODUCT, which reads PROBABILITIES; nullopt where shapes are not known.
std::optional<FactorMaps> factor_maps(Value& probabilities, const ValueProduct& product, Facts& facts);

/// What broadcasts to a value, perhaps seen through nodes that only move or repeat it.
struct Broadcast {
  std::vector<FactorSide> views;
};

/// FACTOR, which broadcasts to TO without enlarging it; no views if that is not known.
Broadcast broadcast_of(Value& factor, const FactorSide& to, MatchContext& context);
/// True if FACTOR has more than one element for ROLE.
bool varies(const Broadcast& factor, Role role);

/// FACTOR as it broadcasts to SIDE, on whose rows lie its ROWS; null if it would enlarge SIDE, or, unless MAY_COPY, be copied
/// since SIDE merges axes of which it has some alone.
Value* placed_beside(const Broadcast& factor, Role rows, const FactorSide& side, bool may_copy, Node& reader,
                     MatchContext& context);

}  // namespace attn_opt
