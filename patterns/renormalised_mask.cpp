#include "patterns/renormalised_mask.h"

#include <algorithm>

#include "attn_opt/canonical.h"
#include "attn_opt/matcher.h"
#include "patterns/conditions.h"
#include "patterns/inner_values.h"
#include "patterns/peel_steps.h"
#include "patterns/row_reduction.h"

namespace attn_opt {
namespace {

/// The only Div that divides VALUE; null if there is none or several.
Node* division_of(Value& value, Facts& facts) {
  Node* found = nullptr;
  for (const Reader& reader : readers_of(value, facts).all) {
    if (!reader.node || reader.node->graph != value.graph || !reader.node->is("Div") || reader.input != 0) continue;
    if (found) return nullptr;
    found = reader.node;
  }
  return found;
}

/// What NODE, a Where, takes where CONDITION holds and where it does not.
struct Choice {
  Value* condition = nullptr;
  Value *held = nullptr, *otherwise = nullptr;
};

std::optional<Choice> choice_of(const Node* node, Facts& facts) {
  if (!node || !node->is("Where") || node->inputs.size() != 3) return std::nullopt;
  const Condition condition = affirmed({node->inputs[0], true}, facts);
  return Choice{condition.value, node->inputs[condition.is_true ? 1 : 2], node->inputs[condition.is_true ? 2 : 1]};
}

/// The denominator that DIVIDES what is left of probabilities.
struct Denominator {
  Value* is_positive = nullptr;  ///< that the sum is; null if it is not asked
};

std::optional<Denominator> denominator_of(Value& divisor, Value& left, size_t keys, Facts& facts) {
  Value* rows = &left;
  const Matcher total = reduction_of_rows("ReduceSum", &rows, keys);
  if (total(divisor, facts)) return Denominator{};
  const auto choice = choice_of(canonical(divisor, facts).producer, facts);
  if (!choice || facts.uniform(*choice->otherwise) != 1.0 || !total(*choice->held, facts)) return std::nullopt;
  Value* sum = choice->held;
  const Matcher is_positive = either({op("Greater", {same(&sum), number_is(0)}), op("Less", {number_is(0), same(&sum)})});
  return is_positive(*choice->condition, facts) ? std::optional(Denominator{choice->condition}) : std::nullopt;
}

/// True if every reader of LEFT is DIVIDES or a sum that only DIVIDES sees.
bool serves_only(Value& left, const Node& divides, Facts& facts) {
  const Readers readers = readers_of(left, facts);
  return !readers.is_output && std::ranges::all_of(readers.all, [&](const Reader& reader) {
    return reader.node && (reader.node == &divides || reader.node->is("ReduceSum"));
  });
}

/// Where(IS_POSITIVE, QUOTIENT, 0); null if QUOTIENT is read otherwise.
Value* guarded(Value& quotient, Value& is_positive, Facts& facts) {
  const Readers readers = readers_of(quotient, facts);
  const auto choice = readers.only_one() ? choice_of(readers.all[0].node, facts) : std::nullopt;
  if (!choice || choice->condition != &is_positive || facts.uniform(*choice->otherwise) != 0.0) return nullptr;
  return &canonical(*choice->held, facts) == &canonical(quotient, facts) ? readers.all[0].node->outputs[0] : nullptr;
}

}  // namespace

std::optional<RenormalisedMask> renormalised_mask(const Readers& readers, Value& probabilities, size_t keys, MatchContext& context) {
  Facts& facts = context.facts;
  Node* node = readers.only_one() ? readers.all[0].node : nullptr;
  if (!node || node->graph != probabilities.graph || !node->is("Mul")) return std::nullopt;
  const auto condition = condition_of_number(*node->inputs[static_cast<size_t>(1 - readers.all[0].input)], facts);
  Value& left = *node->outputs[0];
  if (!condition || !keeps_shape(left, probabilities, facts)) return std::nullopt;
  Node* divides = division_of(left, facts);
  const auto denominator = divides ? denominator_of(*divides->inputs[1], left, keys, facts) : std::nullopt;
  if (!denominator || !serves_only(left, *divides, facts)) return std::nullopt;
  RenormalisedMask mask{condition->value, divides->outputs[0]};
  if (denominator->is_positive) {
    Value* rows = guarded(*mask.result, *denominator->is_positive, facts);
    mask.guards_empty_rows = true;  // 0 divided by 1
    mask.guards_nan = rows != nullptr;
    if (rows) mask.result = rows;
  }
  if (!condition->is_true) mask.keep = InnerValues(*node, context).build().node("Not", {condition->value});
  return mask;
}

}  // namespace attn_opt
