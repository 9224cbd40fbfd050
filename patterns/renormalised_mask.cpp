#include "patterns/renormalised_mask.h"

#include <algorithm>

#include "attn_opt/canonical.h"
#include "attn_opt/matcher.h"
#include "patterns/conditions.h"
#include "patterns/inner_values.h"
#include "patterns/peel_steps.h"
#include "patterns/row_sum.h"

namespace attn_opt {
namespace {

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

/// Where NODE, which reads PROBABILITIES, leaves them as they are; elsewhere it makes them 0. Nullopt if it does anything else.
std::optional<Condition> kept_by(const Node& node, const Reader& probabilities, Facts& facts) {
  if (node.is("Mul")) return condition_of_number(*node.inputs[static_cast<size_t>(1 - probabilities.input)], facts);
  const auto choice = choice_of(&node, facts);
  if (!choice || node.inputs[0] == probabilities.read) return std::nullopt;
  const bool is_held = choice->held == probabilities.read;
  return facts.uniform(is_held ? *choice->otherwise : *choice->held) == 0.0 ? std::optional(Condition{choice->condition, is_held}) : std::nullopt;
}

/// A division by the sum of what it divides.
struct Division {
  Node* node = nullptr;
  RowSum sum;
};

/// The division of LEFT by its sum along the axis KEYS before the last, if nothing else reads it.
std::optional<Division> division_of(Value& left, size_t keys, Facts& facts) {
  const Readers readers = readers_of(left, facts);
  std::optional<Division> found;
  for (const Reader& reader : readers.all) {
    Node* node = reader.node;
    if (!node || node->graph != left.graph || !(node->is("Mul") || (node->is("Div") && reader.input == 0))) continue;
    auto sum = row_sum(*node->inputs[static_cast<size_t>(1 - reader.input)], node->is("Mul"), facts.shape(left).known().size(), facts);
    if (sum && !sum->is_inexact && sum->others.empty() && sum->factor == 1 && axis_in(sum->rows, left, false, facts) == keys) found = Division{node, *std::move(sum)};
  }
  const auto serves = [&](const Reader& reader) { return reader.node && (reader.node == found->node || reader.node == found->sum.rows.node); };
  return found && !readers.is_output && std::ranges::all_of(readers.all, serves) ? found : std::nullopt;
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
  if (!node || node->graph != probabilities.graph || !(node->is("Mul") || node->is("Where"))) return std::nullopt;
  const auto condition = kept_by(*node, readers.all[0], facts);
  Value& left = *node->outputs[0];
  if (!condition || !keeps_shape(left, probabilities, facts)) return std::nullopt;
  const auto division = division_of(left, keys, facts);
  if (!division) return std::nullopt;
  RenormalisedMask mask{condition->value, division->node->outputs[0]};
  mask.guards_empty_rows = division->sum.is_never_zero;  // 0 divided by another number
  Value* rows = division->sum.is_positive ? guarded(*mask.result, *division->sum.is_positive, facts) : nullptr;
  mask.guards_nan = rows != nullptr;
  if (rows) mask.result = rows;
  if (!condition->is_true) mask.keep = InnerValues(*node, context).build().node("Not", {condition->value});
  return mask;
}

}  // namespace attn_opt
