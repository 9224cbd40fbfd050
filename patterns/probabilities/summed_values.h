// V times probabilities, added up over the keys:
//
//   ReduceSum(Mul(p, v), 1)  =>  p v      ReduceMean(Mul(p, v), 1)  =>  p (v / S), of S keys
#pragma once

#include "attn_opt/facts.h"
#include "patterns/readers.h"

namespace attn_opt {

/// The ReduceSum or ReduceMean that alone reads what FACTORS, a Mul, makes; null if there is none.
Node* only_sum(const Node& factors, Facts& facts);

/// Puts in the place of each of READERS that is a Mul of probabilities, whose keys lie KEYS_FROM_LAST, and V the ReduceSum or
/// ReduceMean over the keys that alone reads what it makes.
void take_sums(Readers& readers, size_t keys_from_last, Facts& facts);

}  // namespace attn_opt
