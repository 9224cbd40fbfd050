#include "patterns/probabilities/added_parts.h"

#include <algorithm>
#include <utility>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/layout_checks.h"
#include "patterns/scaled_values.h"
#include "patterns/softmax/row_sum.h"

namespace attn_opt {
namespace {

/// Enters in ADDENDS what VALUE, which is added up so many TIMES, is made of, by so many STEPS upward.
void enter_addends(Value& value, double times, int steps, std::vector<Addend>& addends, MatchContext& context) {
  Facts& facts = context.facts;
  Value& sum = canonical(value, facts);
  const auto [scaled, factor] = sum.producer && steps > 0 ? scaled_by(*sum.producer, context) : std::pair<Value*, double>();
  const auto terms = scaled ? std::vector<Addend>{{scaled, factor}} : FormReader(facts).linear_terms(sum);
  const MaybeShape whole = facts.shape(sum);
  const bool is_made_of_others = steps > 0 && std::ranges::all_of(terms, [&](const Addend& term) {
                                   const MaybeShape own = facts.shape(*term.value);
                                   return term.value != &sum && own && whole && *own == *whole;
                                 });
  const auto known = std::ranges::find(addends, &sum, &Addend::value);
  if (!is_made_of_others && known != addends.end()) known->coefficient += times;
  if (!is_made_of_others && known == addends.end()) addends.push_back({&sum, times});
  if (!is_made_of_others) return;
  for (const Addend& term : terms) enter_addends(*term.value, times * term.coefficient, steps - 1, addends, context);
}

}  // namespace

bool may_lead_to_sum(const Node& node) {
  return has(node, Trait::kAdds) || has(node, Trait::kMultiplies) || node.is("Neg") || node.is("Transpose");
}

std::vector<Addend> addends_within(Value& value, MatchContext& context) {
  std::vector<Addend> addends;
  enter_addends(value, 1, kMaxTogether, addends, context);
  return addends;
}

}  // namespace attn_opt
