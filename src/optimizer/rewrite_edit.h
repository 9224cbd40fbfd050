// The edit that a rewrite asks for, and whether it can be put where it is to go.
#pragma once

#include <string_view>
#include <vector>

#include "attn_opt/rewrite.h"

namespace attn_opt {

/// Id of the miss of an edit that cannot be where it is to go: what would be made is read before, or what is read is made
/// behind.
inline constexpr std::string_view kRewriteOrder = "rewrite.order";

/// Fills EDIT, which is empty, with what REWRITE makes of MATCH, which it found at NODE. Gives the nodes that it would leave
/// dead. Misses: those of apply(), "rewrite.place", kRewriteOrder.
Matched<std::vector<Node*>> fill_edit(const Rewrite& rewrite, const RewriteMatch& match, const Node& node,
                                      const SharedNodes& shared, Edit& edit);

}  // namespace attn_opt
