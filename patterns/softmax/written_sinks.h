// Sinks of a softmax that is written out: what is added to the sum of the exponentials.
//
//   Exp(s - m) / (ReduceSum(Exp(s - m)) + Exp(z - m))      s with the column z beside it
//   Exp(s - m) / (ReduceSum(Exp(s - m)) + Exp(-m))         with a column of 0
//   Exp(s) / (ReduceSum(Exp(s)) + 1)                       the same
//
// where m is any number for each row, which a softmax does not see.
#pragma once

#include <optional>
#include <vector>

#include "attn_opt/pattern.h"
#include "patterns/softmax/row_sum.h"

namespace attn_opt {

/// What the exponents of rows are less by: the values BY, times the FACTOR of powers, and NUMBER.
struct Lowering {
  Value* by = nullptr;
  double number = 0;
  double factor = 1;
};

/// The rows that a softmax runs over: RANK axes, of which the number KEYS is added up, in TYPE.
struct SummedRows {
  size_t rank = 0, keys = 0;
  DataType type = onnx::TensorProto::FLOAT;
};

/// The column beside ROWS, of exponents before they were LOWERED, that ADDED is exp() of: with RANK axes, of which KEYS has the
/// size 1. What is made for it stands above READER. Null if ADDED is no exponential, or of an exponent that was lowered by
/// anything else.
Value* column_of(const AddedToSum& added, const Lowering& lowering, const SummedRows& rows, Node& reader,
                 MatchContext& context);

}  // namespace attn_opt
