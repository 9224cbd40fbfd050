// Heads, queries or batch elements picked of probabilities that others are picked of too, as the two halves of heads in
// differential attention: each is the softmax of its own scores.
//
//   Gather(Reshape(Softmax(x)), 0)  =>  Softmax(Gather(Reshape(x), 0))
#pragma once

#include <optional>

#include "patterns/softmax/softmax_anchor.h"

namespace attn_opt {

/// Cheap: true for a Slice or Gather of a Softmax that others read, or of its result regrouped, and for a Split of which more
/// than one part is read.
bool may_pick_of_softmax(const Node& node);

/// The Softmax that NODE, a Slice, Gather or Split, picks of; null if there is none.
Node* picked_source(const Node& node);

/// The softmax of what a Slice, Gather or Split picks as PART along another axis than the keys'; also where it is the last to
/// read it. Nullopt if it picks of no softmax.
std::optional<SoftmaxSite> picked_softmax(Value& part, MatchContext& context);

}  // namespace attn_opt
