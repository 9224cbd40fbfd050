// A sink that is written behind the product with V, by what the weights of the keys add up to beside it:
//
//   softmax(x) V * Sigmoid(lse(x) - z)  =>  the same as with exp(z) added to the sum of exponentials
#pragma once

#include <optional>

#include "patterns/probabilities/probability_walk.h"
#include "patterns/products/products.h"

namespace attn_opt {

struct SinkGate {
  Value* column = nullptr;        ///< z, beside the scores
  const Value* gated = nullptr;   ///< what the product's result is moved to
  Value* made = nullptr;          ///< that, multiplied with its share
  bool leaves_exp_range = false;  ///< it is told by exp() of scores that are not lowered
};

/// The gate behind PRODUCT, of what WALK makes of SOFTMAX; nullopt if there is none.
std::optional<SinkGate> sink_gate(const SoftmaxSite& softmax, const ProbabilityWalk& walk, const ValueProduct& product,
                                  MatchContext& context);

}  // namespace attn_opt
