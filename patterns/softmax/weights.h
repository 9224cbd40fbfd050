// Weights: what is divided by its own sum.
//
//   Exp(x)      Softmax(x), and every other softmax (softmax_anchor.h)      what is left of these where columns are cut off
//   Softmax(x) * Exp(y)      Softmax(x)^c
//
// where any may be masked, by Where or by ones and zeros, and multiplied with a number. A softmax holds exponentials up to a
// number for each row, which is the same in the sum: a mask that is laid over probabilities, which are divided by what is left
// of them, is -inf in the scores.
#pragma once

#include <optional>

#include "attn_opt/pattern.h"
#include "patterns/scores/score_form.h"
#include "patterns/softmax/exponentials.h"
#include "patterns/softmax/softmax_anchor.h"

namespace attn_opt {

/// FACTOR times CORE, of which FORM is kept.
struct Weights {
  Value* core = nullptr;
  ScoreForm form = {};  ///< of what the core is exp() of: that, and -inf
  double factor = 1;
  bool hides_nan = false;                   ///< what is NaN of CORE is 0
  Exponent exponent = {};                   ///< what the core is exp() of, if it is no softmax
  std::optional<SoftmaxSite> softmax = {};  ///< that the core is, if it is no exponential
};

/// VALUE, made elementwise of a core and numbers, perhaps with the shape of more; nullopt if it is more. The number that the
/// core is multiplied with may be negative: the sum is, too.
std::optional<Weights> weights_in(Value& value, Node& reader, MatchContext& context);

/// What VALUE was cut off from; VALUE if it was not.
Value& uncut(Value& value, Facts& facts);

}  // namespace attn_opt
