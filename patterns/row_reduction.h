// A number for each row: its sum or its maximum, with the row's axis kept, put back, or repeated; the rows may have been
// transposed before or after, and cast from one floating type to another.
//
//   ReduceMax<keepdims=0> ─ Max(-inf) ─ Transpose ─ Reshape ─ Expand      as jax.nn.softmax is exported
#pragma once

#include "attn_opt/matcher.h"

namespace attn_opt {

/// VALUE before it was cast from one floating type to another: a sum or a maximum may be taken in a wider one.
Value& before_float_casts(Value& value, Facts& facts);

/// Fits OP_TYPE (ReduceSum, ReduceMax, ...) of the rows, along the last axis or the one so many before it, of what TERMS holds by then:
/// a value that broadcasts to it with the row's number in each of its elements. REDUCES is the node that does.
Matcher reduction_of_rows(std::string op_type, Value* const* terms, const Node** reduces = nullptr, size_t before_last = 0);

/// The rows, along the axis BEFORE_LAST the last of RANK, that VALUE holds a number of OP_TYPE for; null if there are none, or if they
/// lie otherwise.
Value* reduced_rows(const std::string& op_type, Value& value, size_t rank, Facts& facts, size_t before_last = 0);

}  // namespace attn_opt
