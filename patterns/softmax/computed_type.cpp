#include "patterns/softmax/computed_type.h"

#include "attn_opt/internal/mask_contents.h"

namespace attn_opt {
namespace {

/// True if the sum of a score and TERM is exact in a type whose fills absorb at ABSORBING, wherever the score has a weight.
bool is_exact_anywhere(const ScoreTerm& term, double absorbing, Facts& facts) {
  if (facts.uniform(*term.value) == 0.0) return true;
  if (term.causal && term.causal->otherwise <= absorbing) return true;
  const MaskContents contents = mask_contents(*term.value, facts);
  return !contents.may_hold_lowest && contents.least >= 0 && contents.greatest <= 0;
}

}  // namespace

DataType computed_type(DataType of_query, const std::vector<ScoreTerm>& terms, Facts& facts) {
  DataType type = of_query;
  for (const ScoreTerm& term : terms) {
    const DataType of_sum = facts.type(*term.value);
    const bool is_wider = is_floating(of_sum) && element_size(of_sum) > element_size(type);
    if (term.kind == ScoreTerm::Kind::kBias && is_wider && !is_exact_anywhere(term, absorbing_fill(type), facts)) type = of_sum;
  }
  return type;
}

}  // namespace attn_opt
