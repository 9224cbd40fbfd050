// Products with V in parts, and what the model makes of these: their sum where the keys are cut, as caches are read whose keys
// and values are never joined, and else all of them side by side.
//
//   P[:, :s] V + P[:, s:] W  =>  P Concat(V, W)
//   Concat(P[:l] V, P[l:] V)  =>  P V       along the queries
//   Concat(P[h] V, P[i] W)  =>  P Concat(V, W)       along heads or batch elements
//   Concat(P V, P W)  =>  P Concat(V, W)       along the features
//
// A part may be multiplied in parts itself.
#pragma once

#include <optional>

#include "attn_opt/pattern.h"
#include "patterns/readers.h"

namespace attn_opt {

struct SegmentedProduct {
  Node* product = nullptr;  ///< of the probabilities and all values, unplaced
  Value* whole = nullptr;   ///< what the model makes of its parts
  bool others_read = false;
  bool drops_values = false;  ///< of V, which the model multiplies with 0
  double largest_factor = 1;  ///< what the model's values are multiplied with at most, or summed up as many times
};

/// The product that READERS of PROBABILITIES, whose keys lie KEYS_FROM_LAST, make in parts; nullopt if they make none.
std::optional<SegmentedProduct> segmented_product(const Readers& readers, Value& probabilities, size_t keys_from_last,
                                                  MatchContext& context);

}  // namespace attn_opt
