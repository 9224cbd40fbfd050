// A mask of ones and zeros that scores are multiplied with, as GPT and old exports of GPT-2 have it.
//
//   scores * m + (1 - m) * -10000        is        Where(m, scores, -10000)
//
// A constant may hold another number than 1, which is the scale then.
#pragma once

#include <optional>
#include <vector>

#include "attn_opt/pattern.h"

namespace attn_opt {

struct FactorMask {
  std::vector<ScoreTerm> terms;  ///< the mask innermost
  double number = 1;             ///< that what is kept is multiplied with
};

/// The terms BEFORE without the bias that stands for the fill where FACTOR is 0, and with a mask instead; READER multiplies the
/// scores with FACTOR. nullopt if FACTOR is not known to be 0 or one number everywhere, or nothing is added where it is 0.
std::optional<FactorMask> masked_by_factor(Value& factor, const std::vector<ScoreTerm>& before, Node& reader, MatchContext& context);

}  // namespace attn_opt
