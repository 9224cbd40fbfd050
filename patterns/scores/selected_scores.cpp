#include "patterns/scores/selected_scores.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/inner_values.h"
#include "patterns/layout_checks.h"
#include "patterns/products/product_letters.h"
#include "patterns/products/products.h"
#include "patterns/scores/peel_form.h"
#include "src/match/cut_range.h"
#include "src/match/node_forms.h"
#include "src/match/permutation.h"
#include "src/match/shape_rules/reduced_axis.h"

namespace attn_opt {
namespace {

/// Nodes between what picks and the product.
constexpr int kMaxAbovePicked = 24;
/// Nodes that booleans may be made by which scores are asked for.
constexpr int kMostAsking = 4;

bool is_of_one(const Value* list, Facts& facts) {
  const MaybeShape shape = list ? facts.shape(*list) : nullptr;
  return shape && shape->size() == 1 && shape->front().is(1);
}

/// The one axis that NODE, a Slice, names; nullopt if it names several, or that is not known.
std::optional<size_t> only_axis(const Node& node, size_t rank, Facts& facts) {
  const IntegerData* axes = node.input(3) ? facts.integers(*node.inputs[3]) : nullptr;
  const bool is_one = is_of_one(node.input(1), facts) && node.input(2) && axes && axes->values.size() == 1;
  return is_one && axes->values[0].is_constant() ? axis_in(axes->values[0].value(), rank) : std::nullopt;
}

/// What PART of a Split or Slice is of its source, if that is known in numbers.
std::optional<CutRange> known_range(const Value& part, Facts& facts) {
  const auto range = cut_range(part, facts);
  return range && range->first.is_constant() && range->count.is_constant() ? range : std::nullopt;
}

/// True if an element of what NODE makes depends on those of its inputs in its place, or tells of one.
bool acts_in_places(const Node& node) { return has(node, Trait::kElementwise) || node.is("IsNaN") || node.is("IsInf"); }

/// Follows scores of which PART is picked up to their product, and picks of what that multiplies instead.
class PickedScores {
 public:
  PickedScores(const Value& part, MatchContext& context)
      : part_(part), context_(context), facts_(context.facts), inner_(*part.producer, context) {}

  /// Of VALUE along AXIS, one value for all that read it; null if a product does not have that axis, or none is reached.
  Value* above(Value& value, size_t axis, int steps) {
    const auto [known, is_new] = picked_.try_emplace({&canonical(value, facts_), axis}, nullptr);
    if (is_new) known->second = anew(value, axis, steps);
    return known->second;
  }

 private:
  Value* anew(Value& value, size_t axis, int steps) {
    const Value& seen = canonical(value, facts_);
    Node* node = seen.producer;
    const MaybeShape shape = facts_.shape(value);
    if (!node || !shape || steps == 0) return nullptr;
    if (const auto picked = picked_axis(seen, facts_)) {
      Value* source = PickedScores(seen, context_).above(*node->inputs[0], *picked, steps - 1);
      return source ? above(*source, axis, steps - 1) : nullptr;
    }
    if (const std::vector<int64_t> perm = permutation(*node, shape->size()); !perm.empty()) {
      Value* source = above(*node->inputs[0], static_cast<size_t>(perm[axis]), steps - 1);
      return source ? inner_.transposed(source, perm) : nullptr;
    }
    if (factors_added_up(*node, facts_)) return of_sum(*node, axis, steps);
    if (is_product(*node)) return of_product(*node, axis);
    if (has(*node, Trait::kRegroups) && node->input(0)) return of_regrouped(*node, axis, steps);
    return acts_in_places(*node) ? of_elements(*node, axis, steps) : nullptr;
  }

  bool are_scores(Value& value) {
    return may_be_scores(value, [](const Node&) { return true; }, facts_);
  }

  /// True if VALUE holds what scores are asked for, as where they are NaN, found within so many STEPS.
  bool asks_scores(Value& value, int steps = kMostAsking) {
    const Node* node = canonical(value, facts_).producer;
    if (facts_.type(value) != onnx::TensorProto::BOOL || !node || !acts_in_places(*node) || steps == 0) return false;
    return std::ranges::any_of(node->inputs,
                               [&](Value* input) { return input && (are_scores(*input) || asks_scores(*input, steps - 1)); });
  }

  /// Of an operand of a product or of what is laid over the scores.
  Value* of(Value& value, size_t axis) {
    Node* node = canonical(value, facts_).producer;
    const std::vector<int64_t> perm = node ? permutation(*node, facts_.shape(value).known().size()) : std::vector<int64_t>();
    if (perm.empty()) return picked_as(part_, value, axis, context_);
    Value* source = of(*node->inputs[0], static_cast<size_t>(perm[axis]));
    return inner_.transposed(source, perm);
  }

  /// f(a, b) of which is picked  =>  f(a, b) of those of the operands that have the axis
  Value* of_product(const Node& product, size_t axis) {
    const auto letters = product_letters(product, facts_);
    const MaybeShape made = facts_.shape(*product.outputs[0]);
    if (!letters || !made || letters->result.size() != made->size() || letters->result[axis] == kUnitAxis) return nullptr;
    std::vector<Value*> operands(product.inputs.begin(), product.inputs.end());
    for (size_t i = 0; i < letters->operands.size(); ++i) {
      const size_t place = letters->operands[i].find(letters->result[axis]);
      if (place == std::string::npos) continue;
      const Dim& own = facts_.shape(*operands[i]).known()[place];
      if (own != (*made)[axis] && !own.is(1)) return nullptr;
      if (own == (*made)[axis]) operands[i] = of(*operands[i], place);
    }
    return is_changed(product, operands) ? inner_.again(product, operands) : nullptr;
  }

  /// sum(a * b) of which is picked along AXIS, which is not added up  =>  sum of what is picked of a * b
  Value* of_sum(const Node& sum, size_t axis, int steps) {
    const MaybeShape whole = facts_.shape(*sum.inputs[0]);
    const auto summed = whole ? reduced_axes(sum, whole->size(), facts_) : std::nullopt;
    const bool keeps = sum.int_attribute("keepdims", 1) != 0;
    if (!summed) return nullptr;
    for (const size_t gone : *summed) {
      if (keeps && gone == axis) return nullptr;
      if (!keeps && gone <= axis) ++axis;
    }
    Value* factors = above(*sum.inputs[0], axis, steps - 1);
    const std::vector<int64_t> axes(summed->begin(), summed->end());
    return factors ? inner_.build().along(sum.op(), *factors, axes, {GraphBuilder::attribute("keepdims", int64_t{keeps})})
                   : nullptr;
  }

  /// Reshape(x) of which is picked along AXIS, which it keeps with all behind  =>  Reshape(x of which is picked)
  Value* of_regrouped(const Node& node, size_t axis, int steps) {
    const Shape after = facts_.shape(*node.outputs[0]).known();
    const size_t kept = after.size() - axis;
    const auto has_last_axes = [&](const Shape& before) {
      return before.size() > kept && std::equal(after.end() - static_cast<std::ptrdiff_t>(kept), after.end(),
                                                before.end() - static_cast<std::ptrdiff_t>(kept));
    };
    Value* regrouped = axis > 0 ? before_regroupings(node, has_last_axes, facts_) : nullptr;
    if (!regrouped) return nullptr;
    const auto is_open = [](const Dim& size) { return !size.is_constant(); };
    if (std::count_if(after.begin(), after.begin() + static_cast<std::ptrdiff_t>(axis), is_open) > 1) return nullptr;
    const size_t rank = facts_.shape(*regrouped).known().size();
    Value* source = above(*regrouped, rank - kept, steps - 1);
    if (!source) return nullptr;
    std::vector<Value*> sizes;
    for (size_t i = 0; i < axis; ++i) sizes.push_back(inner_.build().ints({is_open(after[i]) ? -1 : after[i].value()}));
    for (size_t i = rank - kept; i < rank; ++i) sizes.push_back(inner_.size(*source, static_cast<int64_t>(i)));
    return inner_.build().node("Reshape", {source, inner_.concat(sizes, 0)});
  }

  Value* of_elements(const Node& node, size_t axis, int steps) {
    const Shape whole = facts_.shape(*node.outputs[0]).known();
    std::vector<Value*> operands(node.inputs.begin(), node.inputs.end());
    for (Value*& operand : operands) {
      const MaybeShape own = operand ? facts_.shape(*operand) : nullptr;
      if (!operand) continue;
      if (!own || own->size() > whole.size()) return nullptr;
      const size_t lacking = whole.size() - own->size();
      if (axis < lacking) continue;
      const Dim& size = (*own)[axis - lacking];
      if (size != whole[axis] && !size.is(1)) return nullptr;
      if (size != whole[axis]) continue;
      const bool is_followed = are_scores(*operand) || asks_scores(*operand);
      Value* picked = is_followed ? above(*operand, axis - lacking, steps - 1) : nullptr;
      operand = picked ? picked : of(*operand, axis - lacking);
    }
    return is_changed(node, operands) ? inner_.again(node, operands) : nullptr;
  }

  static bool is_changed(const Node& node, const std::vector<Value*>& operands) {
    return !std::ranges::equal(node.inputs, operands);
  }

  const Value& part_;
  MatchContext& context_;
  Facts& facts_;
  InnerValues inner_;
  std::map<std::pair<const Value*, size_t>, Value*> picked_;
};

}  // namespace

std::optional<size_t> picked_axis(const Value& part, Facts& facts) {
  const Node* node = part.producer;
  const MaybeShape whole = node && cuts_out(*node) && node->input(0) ? facts.shape(*node->inputs[0]) : nullptr;
  if (!whole) return std::nullopt;
  if (const auto axis = node->is("Slice") ? only_axis(*node, whole->size(), facts) : std::nullopt) return axis;
  if (!node->is("Gather")) {
    const auto range = known_range(part, facts);
    return range ? std::optional(range->axis) : std::nullopt;
  }
  const MaybeShape list = node->input(1) ? facts.shape(*node->inputs[1]) : nullptr;
  return list && list->size() == 1 ? axis_in(node->int_attribute("axis", 0), whole->size()) : std::nullopt;
}

Value* picked_as(const Value& part, Value& whole, size_t axis, MatchContext& context) {
  Node& node = *part.producer;
  InnerValues inner(node, context);
  const auto at = static_cast<int64_t>(axis);
  if (node.is("Gather")) return inner.build().node("Gather", {&whole, node.inputs[1]}, {GraphBuilder::attribute("axis", at)});
  if (node.is("Slice") && is_of_one(node.input(1), context.facts)) {
    std::vector<Value*> inputs = {&whole, node.inputs[1], node.inputs[2], inner.build().ints({at})};
    if (node.input(4)) inputs.push_back(node.inputs[4]);
    return inner.build().node("Slice", inputs);
  }
  const CutRange range = known_range(part, context.facts).value();
  const int64_t first = range.first.value();
  return inner.slice(&whole, inner.build().ints({first}), inner.build().ints({first + range.count.value()}), at);
}

Ways peel_selection(Node& node, const ScoreWalk& walk, MatchContext& context) {
  const auto axis = walk.split ? std::nullopt : picked_axis(*walk.value, context.facts);
  Value* scores = axis ? PickedScores(*walk.value, context).above(*node.inputs[0], *axis, kMaxAbovePicked) : nullptr;
  if (!scores) return missed("scores.operator", &node, node.op(), walk.peeled);
  return std::vector{step(walk, *scores, node.op())};
}

}  // namespace attn_opt
