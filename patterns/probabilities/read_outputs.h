// What others than the product with V read of scores and probabilities, as an output of the Attention node.
#pragma once

#include <optional>

#include "attn_opt/internal/sdpa.h"
#include "patterns/probabilities/guard_meaning.h"
#include "patterns/products/products.h"

namespace attn_opt {

/// The probabilities that others read too, if an output of the Attention node of BATCH and HEADS can be them.
std::optional<OutputView> readable_probabilities(const Reading& reading, const std::optional<LeadingSplit>& split,
                                                 const Dim& batch, const Dim& heads, MatchContext& context);

/// Enters in SDPA the scores that others read, if an output of the Attention node can be them.
void set_scores_output(const Reading& reading, const SoftmaxSite& softmax, const std::optional<LeadingSplit>& split,
                       MatchContext& context, Sdpa& sdpa);

}  // namespace attn_opt
