// Attention over blocks of keys, whose exponentials are added up one block after the other, as flash attention does:
//
//   l = sum(exp(S1 - m1))      o = exp(S1 - m1) V1      a = exp(m1 - m)      where m = max(m1, max(S2))
//   (a * o + exp(S2 - m) V2) / (a * l + sum(exp(S2 - m)))  =>  softmax(Concat(S1, S2)) Concat(V1, V2)
//
// since every exponential is multiplied with that of the same number of its row in the end.
#pragma once

#include <optional>

#include "attn_opt/pattern.h"
#include "patterns/softmax/softmax_anchor.h"

namespace attn_opt {

struct KeyBlocks {
  SoftmaxSite softmax;      ///< over all keys, unplaced
  Node* product = nullptr;  ///< with all values, unplaced
  Value* made = nullptr;    ///< what the model makes of its parts
  const char* word = "Add(blocks)";
};

/// The blocks whose sum NODE divides by the sum of their exponentials; nullopt if it does anything else.
std::optional<KeyBlocks> key_blocks(Node& node, MatchContext& context);

}  // namespace attn_opt
