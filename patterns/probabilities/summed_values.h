// V times probabilities, added up over the keys:
//
//   ReduceSum(Mul(p, v), 1)  =>  p v      ReduceMean(Mul(p, v), 1)  =>  p (v / S), of S keys
#pragma once

#include "attn_opt/facts.h"
#include "patterns/readers.h"

namespace attn_opt {

/// The ReduceSum or ReduceMean behind READER, a Mul of probabilities and V that it alone reads, over the keys, which lie
/// KEYS_FROM_LAST in the probabilities; null if there is none.
Node* sum_of_values(const Reader& reader, size_t keys_from_last, Facts& facts);

}  // namespace attn_opt
