// What a form of the scores is to the operator: a scale, biases, and fills laid over them.
#pragma once

#include <vector>

#include "attn_opt/miss.h"
#include "attn_opt/pattern.h"
#include "patterns/scores/score_form.h"

namespace attn_opt {

struct FormTerms {
  double scale = 1;
  std::vector<ScoreTerm> terms;  ///< outermost first
  bool drops_nan = false;        ///< what 0 is multiplied with may be infinite: NaN in the model
};

/// FORM, whose core is scores of TYPE, at NODE. Misses: "scores.where": a case is neither scores nor a fill;
/// "scores.scale-per-score": scores have several factors.
Matched<FormTerms> terms_of(const ScoreForm& form, DataType type, Node& node, MatchContext& context);

}  // namespace attn_opt
