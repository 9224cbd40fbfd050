// A mask that is laid over probabilities, which are divided by what is left of them: the same as -inf in the scores.
//
//   Softmax ─ Mul(mask) ─┬─────────────── Div ─ MatMul(V)           flax.nnx by jax2onnx
//                        └─ ReduceSum ─────┘
//
//   the mask also as Where(mask, ·, 0), the sum in any words (row_sum.h); behind the Div Where(s > 0, ·, 0): rows without a key are 0
//
// Where all keys that are kept have probabilities too small for their type the model has 0, the operator has not.
#pragma once

#include <optional>

#include "attn_opt/pattern.h"
#include "patterns/readers.h"

namespace attn_opt {

struct RenormalisedMask {
  Value* keep = nullptr;          ///< booleans
  Value* result = nullptr;        ///< probabilities again
  bool guards_empty_rows = false; ///< rows that the mask leaves no key are 0
  bool guards_nan = false;        ///< so are rows that are NaN
};

/// What READERS, of PROBABILITIES whose keys lie along the axis KEYS before the last, do so; nullopt if they do something else.
std::optional<RenormalisedMask> renormalised_mask(const Readers& readers, Value& probabilities, size_t keys, MatchContext& context);

}  // namespace attn_opt
