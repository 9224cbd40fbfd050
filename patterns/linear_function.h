// What elementwise operators make of one value and numbers, where that is a number times the value, and another, in whatever
// words: told by what they make of numbers where they bend and, being lines there, at two places between.
//
//   Relu(x) - Relu(-x)  =>  x      Abs(x) * Sign(x)  =>  x      Max(x, 0) + Min(x, 0)  =>  x      Where(x > 0, x, 3 x - 2 x) =>
//   x
//
// So what operators of truths and numbers make of one truth: it, or what it is not.
//
//   Cast(m) > 0  =>  m      Equal(Cast(m), 0)  =>  not m      Xor(m, true)  =>  not m      And(m, m)  =>  m
#pragma once

#include <optional>
#include <vector>

#include "attn_opt/facts.h"
#include "attn_opt/graph.h"

namespace attn_opt {

/// True for an elementwise operator that is linear in pieces: Relu, Abs, Sign, Max, Min, Where.
bool bends(const Node& node);

/// True for an elementwise operator of truths and numbers, as truths_made_by() computes it: no quotient of integers.
bool is_of_truths(const Node& node, Facts& facts);

/// What NODE, which is_of_truths(), makes of the numbers OF, one of each input, true being 1; NaN where that hangs on how
/// integers of its type begin anew, or on NaN.
double truths_made_by(const Node& node, const std::vector<double>& of, Facts& facts);

/// FACTOR times VALUE, and NUMBER.
struct LinearFunction {
  Value* value = nullptr;
  double factor = 1, number = 0;
};

/// What RESULT is of the nearest value that alone it is made of through operators that are no sums and products with numbers;
/// nullopt if it is no linear function of that.
std::optional<LinearFunction> linear_function_in(Value& result, Facts& facts);

/// What VALUE, booleans, is, or is not.
struct TruthFunction {
  Value* value = nullptr;
  bool is_true = true;
};

/// What RESULT, booleans, is of the nearest booleans that alone it is made of by operators of truths and numbers; nullopt if
/// it is neither them nor what they are not.
std::optional<TruthFunction> truth_function_in(Value& result, Facts& facts);

}  // namespace attn_opt
