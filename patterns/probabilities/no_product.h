// Weights that come to no product with V.
#pragma once

#include <string>
#include <vector>

#include "attn_opt/miss.h"
#include "attn_opt/pattern.h"
#include "patterns/readers.h"

namespace attn_opt {

/// What was done on the way to where no product was reached.
struct WayTaken {
  bool divides_late = false;  ///< the weights are divided behind a product
  const std::vector<std::string>& peeled;
};

/// The miss where READERS of VALUE, which SOFTMAX became, lead to no product. A softmax that is no attention ends elsewhere (a
/// router): "not-attention"; one that is changed on the way to a product is worth a miss: "probabilities.quantized",
/// "probabilities.operator", "softmax.unknown-rank".
tl::unexpected<Miss> nothing_reached(const Readers& readers, Value& value, Value& softmax, const WayTaken& way,
                                     MatchContext& context);

}  // namespace attn_opt
