#include "patterns/probabilities/linear_steps.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/inner_values.h"
#include "patterns/products/product_letters.h"

namespace attn_opt {
namespace {

bool is_one(const Dim& size) { return size.is(1); }

/// True where NODE adds its two operands, subtracts one, or takes their mean.
bool adds_two(const Node& node) { return node.inputs.size() == 2 && has(node, Trait::kAdds); }

/// True where NODE is an operator of steps that changes its input AT.
bool may_step(const Node& node, int at, Facts& facts) {
  if (node.is("Mul")) return at < 2;
  if (node.is("Div")) return at == 0;
  if (adds_two(node)) return true;
  if (!node.is("Where") || at == 0) return false;
  const Value* other = node.input(3 - at);
  return other && facts.uniform(*other) == 0.0;
}

/// Probabilities with one role for all leading axes; that of the features for the keys, which lie KEYS_FROM_LAST, and that of
/// the rows for the other one of the last two.
FactorSide by_role(Value& probabilities, const Shape& shape, size_t keys_from_last) {
  std::vector<Role> roles(shape.size(), Role::kBatch);
  roles[shape.size() - 1 - keys_from_last] = Role::kFeature;
  if (keys_from_last < 2) roles[shape.size() - 2 + keys_from_last] = Role::kRow;
  return {&probabilities, AxisMap::of(shape, roles)};
}

/// STEP as its operand makes it, which is a factor, or has all axes of what it is added to.
std::optional<LinearStep> step_of(LinearStep step, Value& probabilities, std::optional<size_t> keys_from_last,
                                  MatchContext& context) {
  Facts& facts = context.facts;
  const MaybeShape shape = facts.shape(step.operand());
  if (!shape) return std::nullopt;
  if (adds_two(*step.node)) {
    const MaybeShape whole = facts.shape(*step.node->outputs[0]);
    step.adds = whole && shape->size() >= 2 && from_last(*shape, 0) == from_last(*whole, 0) &&
                from_last(*shape, 1) == from_last(*whole, 1);
    const bool lies_anywhere = step.adds && *shape == *whole;
    return step.adds && keys_from_last && (*keys_from_last < 2 || lies_anywhere) ? std::optional(step) : std::nullopt;
  }
  step.is_number = std::ranges::all_of(*shape, is_one);
  if (step.is_number || !keys_from_last) return step.is_number ? std::optional(step) : std::nullopt;
  const Broadcast factor =
      broadcast_of(step.operand(), by_role(probabilities, facts.shape(probabilities).known(), *keys_from_last), context);
  if (factor.views.empty()) return std::nullopt;
  step.may_be_mask = varies(factor, Role::kRow) && varies(factor, Role::kFeature);
  step.is_of_rows = varies(factor, Role::kRow) && !step.may_be_mask;
  return step;
}

/// Values computed anew with another in the place of SOURCE, but for what STEPS add: each once, since sums of a value with
/// itself double the ways that lead to it. A Reshape that copies the probabilities may be none of what has fewer heads.
class Recomputed {
 public:
  Recomputed(Value& source, Value& other, const std::vector<LinearStep>& steps, InnerValues& inner, Facts& facts)
      : source_(canonical(source, facts)), steps_(steps), inner_(inner), facts_(facts), made_{{&source_, &other}} {}

  Value* of(Value* value) {
    if (!value) return nullptr;
    value = &canonical(*value, facts_);
    const auto known = made_.find(value);
    if (known != made_.end()) return known->second;
    Value* made = is_made_of(*value, source_) ? again(*value->producer) : value;
    return made_[value] = made;
  }

 private:
  Value* again(const Node& node) {
    const auto adds = std::ranges::find_if(steps_, [&](const LinearStep& step) { return step.adds && step.node == &node; });
    if (adds != steps_.end()) return of(node.inputs[adds->probabilities]);
    std::vector<Value*> inputs;
    for (Value* input : node.inputs) inputs.push_back(of(input));
    return inner_.again(node, inputs);
  }

  const Value& source_;
  const std::vector<LinearStep>& steps_;
  InnerValues& inner_;
  Facts& facts_;
  std::unordered_map<const Value*, Value*> made_;
};

}  // namespace

std::optional<LinearStep> linear_step(const Readers& readers, Value& probabilities, std::optional<size_t> keys_from_last,
                                      MatchContext& context) {
  if (readers.all.size() != 1) return std::nullopt;
  Facts& facts = context.facts;
  const Reader& reader = readers.all[0];
  if (!reader.node || reader.node->graph != probabilities.graph || !may_step(*reader.node, reader.input, facts))
    return std::nullopt;
  const MaybeShape before = facts.shape(probabilities), after = facts.shape(*reader.node->outputs[0]);
  if (!before || !after || before->size() < 2 || *before != *after) return std::nullopt;
  const bool is_placed = keys_from_last && *keys_from_last < before->size();
  return step_of({reader.node, static_cast<size_t>(reader.input)}, probabilities, is_placed ? keys_from_last : std::nullopt,
                 context);
}

bool are_alike_for_keys(const std::vector<LinearStep>& steps, size_t keys_from_last, Facts& facts) {
  return std::ranges::all_of(steps, [&](const LinearStep& step) {
    const MaybeShape shape = facts.shape(step.operand());
    return shape && from_last(*shape, keys_from_last).is(1);
  });
}

std::optional<OutputStep> beside_product(const LinearStep& step, const Broadcast& factor, const FactorSide& side, bool may_copy,
                                         Node& reader, MatchContext& context) {
  const DataType type = context.facts.type(*side.value);
  const MaybeShape own = context.facts.shape(step.operand());
  const bool is_plain_number = step.is_number && own && own->size() <= 1;
  const Role rows = step.is_of_rows ? Role::kRow : Role::kFeature;
  Value* operand = is_plain_number ? &step.operand() : placed_beside(factor, rows, side, may_copy, reader, context);
  if (!operand) return std::nullopt;
  InnerValues inner(reader, context);
  OutputStep made{step.node->op(), {nullptr, operand}};
  if (step.node->is("Where")) {
    made.operands = {operand, nullptr, inner.build().scalar(0, type)};
    if (step.probabilities == 2) std::swap(made.operands[1], made.operands[2]);
  } else if (context.facts.type(*operand) != type) {
    made.operands[1] = inner.build().node("Cast", {operand}, {GraphBuilder::attribute("to", int64_t{type})});
  }
  return made;
}

Matched<OutputStep> sum_behind_product(const LinearStep& step, const std::vector<LinearStep>& steps, Value& probabilities,
                                       Node& product, MatchContext& context) {
  Value &sum = *step.node->outputs[0], &operand = step.operand();
  const Shape& whole = context.facts.shape(sum).known();
  if (!product.is("MatMul") && context.facts.shape(operand).known() != whole)
    return missed("probabilities.operator", step.node, "'" + operand.name + "' has other batch or heads");
  InnerValues inner(product, context);
  Value* other = Recomputed(sum, *inner.raised(&operand, whole.size()), steps, inner, context.facts).of(&probabilities);
  OutputStep made{step.node->op(), {nullptr, nullptr}};
  made.operands[1 - step.probabilities] = product_with(product, probabilities, other, inner, context.facts);
  return made;
}

Value& behind_added(Value& made, std::vector<OutputStep>& steps) {
  Value* value = &made;
  while (value->uses.size() == 1 && !value->is_output && made.producer->placement == Placement::kAdded) {
    const Use& use = value->uses[0];
    if (!use.node || use.node->placement != Placement::kAdded || !has(*use.node, Trait::kAdds)) break;
    steps.push_back({use.node->op(), {use.node->inputs.begin(), use.node->inputs.end()}});
    steps.back().operands[static_cast<size_t>(use.input)] = nullptr;
    value = use.node->outputs[0];
  }
  return *value;
}

}  // namespace attn_opt
