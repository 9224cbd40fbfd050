// What moves the axes of a part of probabilities, or adds or leaves out such of size 1, one node after the other.
#pragma once

#include "attn_opt/facts.h"
#include "attn_opt/graph.h"
#include "patterns/layout_checks.h"

namespace attn_opt {

/// VALUE before Transposes, and what adds or leaves out axes of size 1.
Untransposed before_moves(Value& value, Facts& facts);

}  // namespace attn_opt
