// The edit that a rewrite asks for, and whether it can be put where it is to go.
#pragma once

#include <vector>

#include "attn_opt/rewrite.h"

namespace attn_opt {

/// Fills EDIT, which is empty, with what REWRITE makes of MATCH, which it found at NODE. Gives the nodes that it would leave
/// dead. Misses: those of apply(), "rewrite.place", "rewrite.order".
Matched<std::vector<Node*>> fill_edit(const Rewrite& rewrite, const RewriteMatch& match, const Node& node,
                                      const SharedNodes& shared, Edit& edit);

}  // namespace attn_opt
