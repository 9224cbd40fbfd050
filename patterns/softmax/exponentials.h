// Exponentials, in whatever words.
//
//   Exp(x)  =>  exp(x)      exp(a) * exp(b)  =>  exp(a + b)      exp(a) / exp(b)  =>  exp(a - b)      1 / exp(a)  =>  exp(-a)
//   Pow(b, x)  =>  exp(ln(b) * x)      where b is a number above 0      Pow(exp(a), c)  =>  exp(c * a), and so Sqrt
//   exp(a) * w  =>  exp(a + log(w)), w being no less than 0      exp(a) * Unsqueeze(exp(b))  =>  exp(a + Unsqueeze(b))
//   Transpose(exp(a))  =>  exp(Transpose(a)), and so Reshape
//   Sigmoid(x) / Sigmoid(-x)      Sigmoid(x) / (1 - Sigmoid(x))      Elu(x) + 1 of no more than 0      (exponential_ratio.h)
#pragma once

#include <optional>

#include "attn_opt/matcher.h"
#include "attn_opt/pattern.h"

namespace attn_opt {

/// FACTOR times VALUE.
struct Exponent {
  Value* value = nullptr;
  double factor = 1;        ///< the logarithm of the base of powers
  bool is_product = false;  ///< of exponentials, each of which may leave their range
};

/// The logarithm of the base that NODE, an Exp or a Pow, takes powers of, element by element; nullopt if it is neither, or the
/// base is not a number above 0.
std::optional<double> log_of_base(const Node& node, Facts& facts);
/// The exponent of NODE, an Exp or a Pow.
inline Value& exponent_input(const Node& node) { return *node.inputs[node.is("Pow") ? 1 : 0]; }
/// Whether what only adds axes of 1 to exponentials is one: it may do so for a product of elements, whose weights these are.
enum class UnitAxes { kOwn, kAdded };
/// True if VALUE is exp() of something.
bool is_exponential(Value& value, MatchContext& context, UnitAxes axes = UnitAxes::kOwn);
/// True if VALUE is constant and each of its numbers is exp() of another.
bool is_constant_above_0(Value& value, Facts& facts);
/// What VALUE is exp() of, made above READER where the graph has no value for it; nullopt if it is no exponential.
std::optional<Exponent> exponent_in(Value& value, Node& reader, MatchContext& context, UnitAxes axes = UnitAxes::kOwn);
/// EXPONENT as one value, made above READER if the graph has none.
Value* value_of(const Exponent& exponent, Node& reader, MatchContext& context);
/// value_of(), of what VALUE is exp() of; null if it is no exponential.
Value* exponent_of(Value& value, Node& reader, MatchContext& context);
/// exponent_of(), or the logarithm of what holds nothing below 0 for what makes it; null if it is neither.
Value* logarithm_of(Value& value, Node& reader, MatchContext& context);

/// Fits MINUEND - SUBTRAHEND by the operators alone: a Sub, or an Add of a Neg.
Matcher plain_difference(const Matcher& minuend, const Matcher& subtrahend);
/// The same in whatever words (differences_in()).
Matcher difference(const Matcher& minuend, const Matcher& subtrahend);

}  // namespace attn_opt
