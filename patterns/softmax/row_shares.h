// A softmax as exponentials times a number for each row, by the algebra of ratios (row_numbers.h).
//
//   exp(x) * r  =>  softmax(x)      where r * sum(exp(x)) is 1, however r is made of sums, maxima and logarithms
//
// The sum may be that of blocks of keys, added up.
#pragma once

#include <optional>

#include "attn_opt/pattern.h"
#include "patterns/softmax/softmax_anchor.h"

namespace attn_opt {

/// The softmax over one of its last two axes that NODE makes; nullopt if it makes none.
std::optional<SoftmaxSite> softmax_of_rows(Node& node, MatchContext& context);

}  // namespace attn_opt
