// What an Attention node asks of its runtime that the target does not give.
#pragma once

#include <string>

#include "attn_opt/pattern.h"

namespace attn_opt {

/// Which of the target's rules (target.h) NODE, of the opset that is written and described by SDPA, breaks; empty if none.
/// Sizes that are not known break none.
std::string target_breach(const Node& node, const Sdpa& sdpa, MatchContext& context);

}  // namespace attn_opt
