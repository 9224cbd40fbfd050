// Layout questions that the walks up and down both ask.
#pragma once

#include "attn_opt/facts.h"
#include "attn_opt/graph.h"

namespace attn_opt {

/// So many nodes are read as one.
inline constexpr int kMaxTogether = 8;

/// The value that NODE, a regrouping, and those it reads leave the last two axes of as they are; null if there is none.
Value* regrouped_from(Node& node, Facts& facts);

/// The value of which NODE, a Transpose, with those it reads swaps the last two axes and nothing else; null if there is none.
Value* swapped_from(Node& node, Facts& facts);

}  // namespace attn_opt
