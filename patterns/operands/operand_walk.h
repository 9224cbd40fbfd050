// Q, K or V: from the product upward to where it comes from.
#pragma once

#include "attn_opt/pattern.h"

namespace attn_opt {

/// Every view on the way up from START that the operand can be read from. Peeled:
///
///   scale (number)   Mul, Div                       layout   Transpose, Reshape, Squeeze, Unsqueeze, Flatten
///   repeat-kv        Expand, any copies of entries   cache    Concat(past, new) along the rows, the past a graph input
///
///   repeat-kv before what acts within each head: written again on what was repeated (head_region.h)
///
/// What is none of these is where the operand comes from. Behind a past only layout is peeled: what else is done to the
/// new rows is not done to the past ones.
Operand walk_operand(OperandView start, MatchContext& context);
/// As walk_operand(), through layout and repetition alone.
Operand walk_movement(OperandView start, MatchContext& context);

/// The values that the layout operators behind VALUE make, as long as each is read for nothing else. The first is VALUE.
std::vector<OutputView> walk_output(Value& value, const AxisMap& axes, MatchContext& context);

/// The axes of the first output of NODE, a layout operator whose first input has AXES; nullopt if they cannot be told.
std::optional<AxisMap> axes_after(const Node& node, const AxisMap& axes, MatchContext& context);

}  // namespace attn_opt
