// Layout questions that the walks up and down both ask.
#pragma once

#include "attn_opt/facts.h"
#include "attn_opt/graph.h"

namespace attn_opt {

/// True if NODE, a Reshape or the like, leaves the last two axes as they are.
bool keeps_last_two_axes(const Node& node, Facts& facts);

/// True if NODE, a Transpose, swaps the last two axes and nothing else.
bool swaps_last_two_axes(const Node& node);

}  // namespace attn_opt
