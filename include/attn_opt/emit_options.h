// How recognised attention is to be written.
#pragma once

#include "attn_opt/precondition.h"
#include "attn_opt/target.h"

namespace attn_opt {

/// Ranks of Q, K, V and Y: (B, L, H*D) or (B, H, L, D); auto: 3-D where that takes no node around the operator, else 4-D.
enum class Form { kAuto, k3d, k4d };
/// kFunctions: calls of local functions LocalAttention… of the domain "intermediate", at the model's own opset.
enum class Stage { kAttention, kFunctions };

/// How a match is to be written.
struct EmitOptions {
  Target target = Target::kPortable;
  Form form = Form::kAuto;
  bool past_is_4d = false;  ///< behind a past 4-D, if form is auto
  Stage stage = Stage::kAttention;
  AcceptedAssumptions accepted = {};  ///< beyond what the match assumes, the written form assumes only these
};

}  // namespace attn_opt
