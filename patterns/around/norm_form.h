// What divides by a root mean square: RMS and layer normalisations, however they are written.
//
//   x ─┬─ (Cast) ─┬───────────────────────────────────────────── Mul ─ (Cast) ─ (Mul by the weight) ─ (Add of the bias) ─ y
//      │          └─ x^2 ─ ReduceMean ─ Add eps ─ 1 / sqrt ───────┘
//
// Read is a sum of products of x, E[x], E[x^2], the inverse root r and vectors of the last axis, so that it does not matter in
// which order a weight, a mean or a bias is taken in:
//
//   layer    (x - E[x]) r w + b   =   x (r w) + (b - E[x] (r w)),       r = (E[(x - E[x])^2] + eps)^-1/2, the same as of
//   rms      x r w                                                           E[x^2] - E[x]^2 + eps; of rms E[x^2] + eps
//
// E[] is a ReduceMean, or a ReduceSum over as many elements as it is divided by.
#pragma once

#include "attn_opt/rewrite.h"

namespace attn_opt {

/// x r w, or (x - E[x]) r w + b where it is CENTRED.
struct NormForm {
  Value* x = nullptr;
  bool centred = false;
  double epsilon = 0;
  Value* weight = nullptr;  ///< of rank 1; null: none
  Value* bias = nullptr;    ///< the same; only beside a weight
  /// The variance is E[x^2] - E[x]^2, of which rounding leaves little where E[x] is large, and which it may take below 0.
  bool cancels = false;
};

/// VALUE, the output of a node, as a normalisation of some x that it is made of. Miss: kNoMatch.
Matched<NormForm> norm_form(Value& value, Facts& facts);

}  // namespace attn_opt
