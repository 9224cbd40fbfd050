// The read-only canonical view: values seen through nodes that change nothing.
#pragma once

#include "attn_opt/facts.h"
#include "attn_opt/graph.h"

namespace attn_opt {

/// True if NODE's first output is its first input, element for element: Identity, a Cast to the same type, a Reshape,
/// Expand or Slice to the same shape, a Concat of one, Dropout at inference, ...
bool is_no_op(const Node& node, Facts& facts);

/// True for nodes of the operators that is_no_op() knows: told by NODE alone, without facts.
bool may_be_no_op(const Node& node);

/// VALUE, or what it is a mere copy of.
Value& canonical(Value& value, Facts& facts);

}  // namespace attn_opt
