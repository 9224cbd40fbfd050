// Sizes that the model reads of values which nothing else needs once attention is one node.
//
//   Softmax ─ MatMul(V)                     Attention
//      └───── Shape ─ Gather ─ …            Shape(input) ─ Concat ─ Gather ─ …
//
// A Shape keeps all alive that makes what it reads. Where its numbers follow from the inputs, or else from what the operator
// reads, they are taken from those.
#pragma once

#include <vector>

#include "attn_opt/edit.h"
#include "attn_opt/internal/emit.h"

namespace attn_opt {

/// Of the nodes that EMISSION does not remove, those that made something for removed ones, and whose sizes are read; and those
/// that read the same with others, for its sizes.
std::vector<Node*> nodes_read_for_sizes(const Emission& emission);

/// What the nodes that EMISSION adds read of others.
std::vector<Value*> values_at_hand(const Emission& emission);

/// Replaces the Shapes that alone read what NODES, and those above them, make, and removes these. Sizes that no graph input
/// says are read of values AT_HAND. Once the emission is committed.
void say_sizes(const std::vector<Node*>& nodes, const std::vector<Value*>& at_hand, MatchContext& context, SharedNodes& shared);

}  // namespace attn_opt
