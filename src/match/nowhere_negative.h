// Values that are told to be nowhere less than 0 by the operators that make them.
#pragma once

#include "attn_opt/facts.h"
#include "attn_opt/graph.h"

namespace attn_opt {

inline constexpr int kMaxAboveSign = 6;

/// True if VALUE, for all that is seen above it in so many STEPS, is nowhere less than 0; NaN is not.
bool is_nowhere_negative(Value& value, Facts& facts, int steps = kMaxAboveSign);

}  // namespace attn_opt
