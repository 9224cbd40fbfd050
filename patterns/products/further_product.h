// Products with V that share their softmax with one before them.
#pragma once

#include <optional>

#include "patterns/softmax/softmax_anchor.h"

namespace attn_opt {

/// The softmax whose probabilities PRODUCT reads and a product before it reads too; nullopt if there is none.
std::optional<SoftmaxSite> softmax_of_further_product(Node& product, MatchContext& context);

}  // namespace attn_opt
