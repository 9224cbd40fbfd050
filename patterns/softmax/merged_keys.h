// Attention over keys of several axes, each pair (x, y) of which is a key:
//
//   p = exp(s) / ReduceSum(exp(s), (x, y)), Einsum("bhqxy,bhxyd->bhqd", p, V)  =>  softmax(Reshape(s)) Reshape(V)
//
// also where the sums divide behind the product, or the softmax takes the axes for one.
#pragma once

#include "patterns/softmax/key_blocks.h"

namespace attn_opt {

/// The attention of one axis of keys whose Y NODE, a product that sums over several, or what that is divided by, makes; nullopt
/// if it makes none.
std::optional<KeyBlocks> merged_keys(Node& node, MatchContext& context);

}  // namespace attn_opt
