// Probabilities that are cut along the keys, of which each part has a product with values of its own, and the sum of these:
//
//   P[:, :s] V + P[:, s:] W  =>  P Concat(V, W)
//
// as caches are read whose keys and values are never joined.
#pragma once

#include <optional>

#include "attn_opt/pattern.h"
#include "patterns/readers.h"

namespace attn_opt {

struct SegmentedProduct {
  Node* product = nullptr;  ///< of the probabilities and all values, unplaced
  Value* sum = nullptr;     ///< what the model makes of its parts
};

/// The product that READERS, all of PROBABILITIES, whose keys lie KEYS_FROM_LAST, make in parts; nullopt if they make none.
std::optional<SegmentedProduct> segmented_product(const Readers& readers, Value& probabilities, size_t keys_from_last,
                                                  MatchContext& context);

}  // namespace attn_opt
