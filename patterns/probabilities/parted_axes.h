// A product with V whose operand the probabilities become by more than moves of queries and keys: heads in the rows, as heads
// that share keys and values are multiplied at once, rows in front of heads that are split, or axes of size 1 for elementwise
// products.
//
//   Reshape(P (B, G * R, L, S) to (B, G, R * L, S)) V  =>  Reshape(Einsum("bgrls,bgsd->bgrld", Reshape(P), V))
//
// Each axis is cut into the factors that move as one, and each of these gets a letter.
#pragma once

#include <optional>
#include <vector>

#include "attn_opt/pattern.h"
#include "patterns/readers.h"

namespace attn_opt {

struct PartedProduct {
  std::vector<int64_t> perm;       ///< of the probabilities, to (leading axes, queries, keys); empty: they lie so
  bool is_regrouped = false;       ///< their leading axes are split behind that
  Value* probabilities = nullptr;  ///< what PRODUCT reads
  Node* product = nullptr;         ///< of these and V, unplaced
  Value* whole = nullptr;          ///< what the model makes, of the same elements in the same order
  bool others_read = false;        ///< the probabilities, or moved ones
};

/// The product with V that layout operators behind PROBABILITIES, whose keys lie KEYS_FROM_LAST, lead to; nullopt if there is
/// none, or if nothing stands in between.
std::optional<PartedProduct> parted_product(const Readers& readers, Value& probabilities, size_t keys_from_last,
                                            MatchContext& context);

/// True if NODE makes what PARTED's product stands for, of as many axes.
bool makes_all_axes(const PartedProduct& parted, const Node& node, Facts& facts);

}  // namespace attn_opt
