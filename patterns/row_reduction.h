// A number for each row: its sum or its maximum, with the row's axis kept, put back, or repeated; the rows may have been
// transposed before or after.
//
//   ReduceMax<keepdims=0> ─ Max(-inf) ─ Transpose ─ Reshape ─ Expand      as jax.nn.softmax is exported
#pragma once

#include "attn_opt/matcher.h"

namespace attn_opt {

/// Fits OP_TYPE (ReduceSum, ReduceMax, ...) of the rows, along the last axis, of what TERMS holds by then: a value that
/// broadcasts to it with the row's number in each of its elements. REDUCES is the node that does.
Matcher reduction_of_rows(std::string op_type, Value* const* terms, const Node** reduces = nullptr);

}  // namespace attn_opt
