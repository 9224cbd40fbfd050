// Attention over blocks of keys, whose exponentials are added up one block after the other, as flash attention does, or whose
// softmaxes are merged by the logarithms of their sums:
//
//   l = sum(exp(S1 - m1))      o = exp(S1 - m1) V1      a = exp(m1 - m)      where m = max(m1, max(S2))
//   (a * o + exp(S2 - m) V2) / (a * l + sum(exp(S2 - m)))  =>  softmax(Concat(S1, S2)) Concat(V1, V2)
//
//   exp(l1 - l) softmax(S1) V1 + exp(l2 - l) softmax(S2) V2  =>  the same      where l = log(e^l1 + e^l2), l1 = logsumexp(S1)
//
// Whatever is added up is a sum of exp(S1) V1, exp(S2) V2, ..., each times a number for each row (row_numbers.h). It is the
// attention over all keys if each of these is 1 / (sum(exp(S1)) + sum(exp(S2)) + ...), by the algebra of ratios (row_ratio.h).
//
// A product with V and ones side by side that is cut again is the product with V, and such a sum.
#pragma once

#include <optional>

#include "attn_opt/pattern.h"
#include "patterns/probabilities/probability_walk.h"
#include "patterns/softmax/softmax_anchor.h"

namespace attn_opt {

struct KeyBlocks {
  SoftmaxSite softmax;      ///< over all keys, unplaced
  Node* product = nullptr;  ///< with all values, unplaced
  Value* made = nullptr;    ///< what the model makes of its parts
  const char* word = "Add(blocks)";
};

/// The blocks of keys of one of which START is the weights, or values if they ARE_WEIGHED; nullopt if it comes to no sum of
/// them. Weights that softmax_at() does not tell may be one block of all keys.
std::optional<KeyBlocks> key_blocks(Value& start, bool are_weighed, MatchContext& context);

/// The way from the softmax of BLOCKS to what the model makes.
ProbabilityWalk walk_of(const KeyBlocks& blocks);

}  // namespace attn_opt
