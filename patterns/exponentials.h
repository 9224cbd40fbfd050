// Exponentials, in whatever words.
//
//   Exp(x)  =>  exp(x)      exp(a) * exp(b)  =>  exp(a + b)      exp(a) / exp(b)  =>  exp(a - b)      1 / exp(a)  =>  exp(-a)
#pragma once

#include <optional>

#include "attn_opt/matcher.h"
#include "attn_opt/pattern.h"
#include "patterns/score_form.h"

namespace attn_opt {

/// True if VALUE is exp() of something.
bool is_exponential(Value& value, Facts& facts);
/// What VALUE is exp() of, made above READER where the graph has no value for it; null if it is no exponential.
Value* exponent_of(Value& value, Node& reader, MatchContext& context);

/// Exponentials, WEIGHTS of which are kept, times FACTOR: 0 or that.
struct MaskedExponentials {
  Value* exponential = nullptr;
  Value* exponent = nullptr;
  ScoreForm weights = {};  ///< of what they are exp() of: that, and -inf
  double factor = 1;
};

/// VALUE, made elementwise of exponentials and numbers of which none is negative, perhaps with the shape of more; nullopt if it is more.
std::optional<MaskedExponentials> masked_exponentials(Value& value, Node& reader, MatchContext& context);

/// Fits MINUEND - SUBTRAHEND, also as a sum with the negative.
Matcher difference(const Matcher& minuend, const Matcher& subtrahend);

}  // namespace attn_opt
