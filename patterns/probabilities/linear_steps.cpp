#include "patterns/probabilities/linear_steps.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "attn_opt/operator_traits.h"
#include "patterns/inner_values.h"
#include "patterns/products/product_letters.h"

namespace attn_opt {
namespace {

bool is_one(const Dim& size) { return size.is(1); }

/// True where NODE adds its two operands, or subtracts one.
bool adds_two(const Node& node) { return node.inputs.size() == 2 && has(node, Trait::kAdds) && !node.is("Mean"); }

/// True where NODE is an operator of steps that changes its input AT.
bool may_step(const Node& node, int at, Facts& facts) {
  if (node.is("Mul")) return at < 2;
  if (node.is("Div")) return at == 0;
  if (adds_two(node)) return true;
  if (!node.is("Where") || at == 0) return false;
  const Value* other = node.input(3 - at);
  return other && facts.uniform(*other) == 0.0;
}

/// The axes of a factor that are not 1, none of them KEYS_FROM_LAST and ROWS_FROM_LAST at once; of what is added, all of them.
std::optional<LinearStep> step_of(LinearStep step, size_t keys_from_last, Facts& facts) {
  const MaybeShape shape = facts.shape(step.operand());
  if (!shape) return std::nullopt;
  if (step.node->inputs.size() == 2 && has(*step.node, Trait::kAdds)) {
    const MaybeShape whole = facts.shape(*step.node->outputs[0]);
    step.adds = whole && shape->size() >= 2 && from_last(*shape, 0) == from_last(*whole, 0) &&
                from_last(*shape, 1) == from_last(*whole, 1);
    return step.adds ? std::optional(step) : std::nullopt;
  }
  const size_t rows_from_last = 1 - keys_from_last;
  const auto varies = [&](size_t axis) { return axis < shape->size() && !from_last(*shape, axis).is(1); };
  if (varies(keys_from_last) && varies(rows_from_last)) return std::nullopt;
  step.is_of_rows = varies(rows_from_last);
  step.axis_from_last = step.is_of_rows ? rows_from_last : keys_from_last;
  step.is_number = std::ranges::all_of(*shape, is_one);
  return step;
}

/// Where the rows (for Y) or keys (for V) of SIDE lie; nullopt if other axes do not lie as those of probabilities do.
std::optional<size_t> rows_from_last(const ProductSide& side) {
  const auto& roles = side.roles;
  if (!side.order.empty() || roles.size() < 2 || !std::is_sorted(roles.begin(), roles.end() - 2)) return std::nullopt;
  if (roles.back() == Role::kRow) return 0;
  return roles[roles.size() - 2] == Role::kRow ? std::optional<size_t>(1) : std::nullopt;
}

/// OPERAND with its last two axes swapped.
Value* swapped(Value& operand, size_t rank, InnerValues& inner) {
  Value* value = rank < 2 ? inner.unsqueezed(&operand, {0}) : &operand;
  std::vector<int64_t> perm(std::max<size_t>(rank, 2));
  std::iota(perm.begin(), perm.end(), int64_t{0});
  std::swap(perm[perm.size() - 2], perm.back());
  return inner.transposed(value, perm);
}

/// The operand of STEP as it broadcasts to SIDE, which it does not enlarge; null if it does.
Value* beside(const LinearStep& step, const ProductSide& side, InnerValues& inner, Facts& facts) {
  const MaybeShape shape = facts.shape(*side.value);
  Shape own = facts.shape(step.operand()).known();
  Value* value = &step.operand();
  if (step.is_number && own.size() <= 1) return value;
  const auto axis = rows_from_last(side);
  if (!shape || (!axis && !step.is_number)) return nullptr;
  const bool lies_otherwise = !step.is_number && *axis != step.axis_from_last;
  if (lies_otherwise && step.axis_from_last < own.size() && !from_last(own, step.axis_from_last).is(1)) {
    value = swapped(*value, own.size(), inner);
    if (own.size() < 2) own.insert(own.begin(), Dim(1));
    std::swap(own[own.size() - 2], own.back());
  }
  const bool has_more_axes = own.size() > shape->size();
  if (has_more_axes && !step.is_number) return nullptr;
  for (size_t i = 0; !step.is_number && i < own.size(); ++i)
    if (!from_last(own, i).is(1) && from_last(own, i) != from_last(*shape, i)) return nullptr;
  return has_more_axes ? inner.reshaped(value, {}) : value;
}

/// Values computed anew with another in the place of SOURCE, but for what STEPS add: each once, since sums of a value with
/// itself double the ways that lead to it.
class Recomputed {
 public:
  Recomputed(Value& source, Value& other, const std::vector<LinearStep>& steps, InnerValues& inner)
      : source_(source), steps_(steps), inner_(inner), made_{{&source, &other}} {}

  Value* of(Value* value) {
    if (!value) return nullptr;
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
    const auto& attributes = node.proto->attribute();
    return inner_.build().node(node.op(), inputs, {attributes.begin(), attributes.end()});
  }

  const Value& source_;
  const std::vector<LinearStep>& steps_;
  InnerValues& inner_;
  std::unordered_map<const Value*, Value*> made_;
};

}  // namespace

std::optional<LinearStep> linear_step(const Readers& readers, Value& probabilities, std::optional<size_t> keys_from_last,
                                      Facts& facts) {
  if (!readers.only_one()) return std::nullopt;
  const Reader& reader = readers.all[0];
  if (!reader.node || reader.node->graph != probabilities.graph || !may_step(*reader.node, reader.input, facts))
    return std::nullopt;
  const MaybeShape before = facts.shape(probabilities), after = facts.shape(*reader.node->outputs[0]);
  if (!before || !after || before->size() < 2 || *before != *after) return std::nullopt;
  const bool is_placed = keys_from_last && *keys_from_last < 2;
  const auto step = step_of({reader.node, static_cast<size_t>(reader.input)}, is_placed ? *keys_from_last : 0, facts);
  return step && (is_placed || step->is_number) ? step : std::nullopt;
}

Matched<OutputStep> behind_product(const LinearStep& step, const ProductSide& side, Node& reader, MatchContext& context) {
  InnerValues inner(reader, context);
  const DataType type = context.facts.type(*side.value);
  Value* operand = beside(step, side, inner, context.facts);
  if (!operand)
    return missed("probabilities.operator", step.node,
                  "'" + step.operand().name + "' lies otherwise than " + (step.is_of_rows ? "Y" : "V"));
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
  Value* other = Recomputed(sum, *inner.raised(&operand, whole.size()), steps, inner).of(&probabilities);
  OutputStep made{step.node->op(), {nullptr, nullptr}};
  made.operands[1 - step.probabilities] = product_with(product, probabilities, other, inner);
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

Matched<Value*> before_product(const LinearStep& step, const ProductSide& side, Node& reader, MatchContext& context) {
  ATTN_OPT_MATCH(OutputStep made, behind_product(step, side, reader, context));
  std::ranges::replace(made.operands, static_cast<Value*>(nullptr), side.value);
  return InnerValues(reader, context).build().node(made.op_type, made.operands);
}

}  // namespace attn_opt
