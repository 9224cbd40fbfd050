// A softmax by how much more than each of its exponentials the sum of their row is: a sum over pairs of scores.
//
//   1 / sum of exp(z_j - z_i) over j  =>  exp(z_i) / sum of exp(z_j) over j
#pragma once

#include <optional>

#include "attn_opt/pattern.h"
#include "patterns/softmax/softmax_anchor.h"

namespace attn_opt {

/// The softmax that NODE makes of sums over pairs of its scores, in whatever words (row_sum.h, exponentials.h); nullopt if it
/// makes none.
std::optional<SoftmaxSite> softmax_of_pairs(Node& node, MatchContext& context);

}  // namespace attn_opt
