// Elementwise operators between the product of Q and K and the softmax: forms of the scores.
#pragma once

#include <functional>

#include "patterns/scores/peel_steps.h"

namespace attn_opt {

/// What NODE makes of the scores among its operands, or of those that several of them are made of. Misses: "scores.enlarged",
/// "scores.where", "scores.scale-shape", "scores.scale-per-score", "scores.bias-below-softcap", "scores.mask-below-softcap",
/// "scores.mask-below-tensor-scale", "scores.too-many-ways".
Ways peel_form(Node& node, const ScoreWalk& walk, MatchContext& context);

/// True if a product that FITS is among what VALUE is made of by operators that scores may pass.
bool may_be_scores(Value& value, const std::function<bool(const Node&)>& fits, Facts& facts);

}  // namespace attn_opt
