// Terms of the scores that mask by position alone.
#pragma once

#include "attn_opt/pattern.h"

namespace attn_opt {

/// Sets `causal` or `not_causal` of SDPA's masks and biases.
void read_causal_terms(Sdpa& sdpa, Facts& facts);

}  // namespace attn_opt
