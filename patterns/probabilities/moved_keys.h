// Keys that are moved alike in the probabilities and in V, right at their product.
//
//   Pad(P) Pad(V)  =>  P V      Gather(P, places) W  =>  P Gather(W, places of these)      Concat(P, P) W  =>  P (W1 + W2)
//
// where W1 and W2 are the halves of W: of V gathered or repeated just so, V is left.
#pragma once

#include "patterns/probabilities/segmented_product.h"

namespace attn_opt {

/// The product of PROBABILITIES that their only reader moves the keys for, which lie KEYS_FROM_LAST; nullopt if it does
/// anything else.
std::optional<SegmentedProduct> product_of_moved_keys(const Readers& readers, Value& probabilities, size_t keys_from_last,
                                                      MatchContext& context);

}  // namespace attn_opt
