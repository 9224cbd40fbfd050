// Exponentials, in whatever words.
//
//   Exp(x)  =>  exp(x)      exp(a) * exp(b)  =>  exp(a + b)      exp(a) / exp(b)  =>  exp(a - b)      1 / exp(a)  =>  exp(-a)
#pragma once

#include "attn_opt/matcher.h"
#include "attn_opt/pattern.h"

namespace attn_opt {

/// True if VALUE is exp() of something.
bool is_exponential(Value& value, Facts& facts);
/// What VALUE is exp() of, made above READER where the graph has no value for it; null if it is no exponential.
Value* exponent_of(Value& value, Node& reader, MatchContext& context);

/// Fits MINUEND - SUBTRAHEND, also as a sum with the negative.
Matcher difference(const Matcher& minuend, const Matcher& subtrahend);

}  // namespace attn_opt
