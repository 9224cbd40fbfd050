// What may be a softmax, told by few nodes, and what looks like one that cannot be read.
#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/products/products.h"
#include "patterns/scores/form_reader.h"
#include "patterns/scores/peel_form.h"
#include "patterns/softmax/exponentials.h"
#include "patterns/softmax/softmax_anchor.h"

namespace attn_opt {
namespace {

bool is_one_of(const Node& node, std::initializer_list<std::string_view> op_types) {
  return std::ranges::any_of(op_types, [&node](std::string_view op_type) { return node.is(op_type); });
}

/// True if VALUE holds nothing but ones, or ones stand beside others in it.
bool has_ones(Value& value, Facts& facts) {
  const Node* maker = canonical(value, facts).producer;
  if (facts.uniform(value) == 1.0) return true;
  return maker && is_one_of(*maker, {"Concat", "Pad"}) &&
         std::ranges::any_of(maker->inputs, [&](Value* part) { return part && facts.uniform(*part) == 1.0; });
}

/// True if NODE adds up elements: a Reduce*, or a product with ones.
bool adds_up(const Node& node, Facts& facts) {
  if (node.is("ReduceSum") || node.is("ReduceL1") || node.is("ReduceMean") || node.is("ReduceSumSquare")) return true;
  return is_product(node) && std::ranges::any_of(node.inputs, [&](Value* input) {
           return node.inputs.size() == 1 || (input && has_ones(*input, facts));
         });
}

/// Nodes that may change nothing, looked through without knowing it.
constexpr int kMaxSuspectCopies = 8;

bool may_add_nothing(const Node& node) { return has(node, Trait::kAdds) || has(node, Trait::kMultiplies); }

/// True if VALUE is an initializer or an input, or may be a copy of one or a number computed from some.
bool may_be_number(const Value* value, int steps = kMaxSuspectCopies) {
  for (; steps > 0 && value; --steps) {
    if (!value->producer || is_one_of(*value->producer, {"Constant", "ConstantOfShape"})) return true;
    const Node& node = *value->producer;
    if (!may_be_no_op(node) || (may_add_nothing(node) && !may_be_number(node.input(1), steps / 2))) return false;
    value = node.input(0);
  }
  return false;
}

/// True if VALUE is what an OP_TYPE makes, or OR_FORM a sum, a product or a choice, or may be a copy of that.
bool made_by(const Value* value, std::initializer_list<std::string_view> op_types, bool or_form = false) {
  for (int step = 0; step < kMaxSuspectCopies && value && value->producer; ++step) {
    const Node& node = *value->producer;
    if (is_one_of(node, op_types) || (or_form && (may_add_nothing(node) || has(node, Trait::kSelects)))) return true;
    if (node.is("Where")) {
      value = node.input(may_be_number(node.input(1)) ? 2 : 1);
      continue;
    }
    if (!may_be_no_op(node)) return false;
    value = node.input(may_add_nothing(node) && may_be_number(node.input(0)) ? 1 : 0);
  }
  return false;
}

/// True if VALUE is what an Exp, a Pow or a Softmax makes, or may be that masked.
bool may_be_weights(const Value* value) {
  const Node* maker = value ? value->producer : nullptr;
  if (made_by(value, {"Exp", "Pow", "Softmax"})) return true;
  if (!maker || !is_one_of(*maker, {"Mul", "Where"})) return false;
  return std::ranges::any_of(maker->inputs, [](const Value* input) { return made_by(input, {"Exp", "Pow", "Softmax"}); });
}

bool may_be_product(const Value* value) { return made_by(value, {"MatMul", "Einsum", "Transpose", "Slice", "Split"}); }

bool may_be_sum(const Value* value) {
  return made_by(value,
                 {"ReduceSum", "ReduceL1", "ReduceMean", "MatMul", "Einsum", "Clip", "Transpose", "Slice", "Split", "Gather",
                  "Unsqueeze", "Exp"},
                 true);
}

bool may_be_reciprocal(const Value* value) { return made_by(value, {"Reciprocal", "Div", "Pow", "Exp"}); }

/// True if VALUE is what something is divided by a sum with.
bool may_be_inverse_sum(const Value* value) {
  const Node* maker = value ? value->producer : nullptr;
  if (!maker || !is_one_of(*maker, {"Reciprocal", "Div", "Pow"})) return false;
  return made_by(maker->input(0), {"ReduceSum"}) || made_by(maker->input(1), {"ReduceSum"});
}

/// True if VALUE is a weight, or made of one by moving and casting its elements, or the same number throughout.
bool is_weight(Value& value, Facts& facts) {
  const Value* seen = &value;
  for (int step = 0; step < kMaxSuspectCopies && seen->producer; ++step) {
    const Node& node = *seen->producer;
    if (!has(node, Trait::kMoves) && !is_one_of(node, {"Cast", "DequantizeLinear"})) break;
    seen = node.input(0);
  }
  return seen->initializer || facts.constant(*seen) || facts.uniform(*seen);
}

bool is_computed_product(const Node& node, Facts& facts) {
  const auto is_computed = [&](Value* input) { return input && !is_weight(*input, facts); };
  return is_product(node) && std::ranges::count_if(node.inputs, is_computed) > 1;
}

bool makes_powers(const Node& node) { return is_one_of(node, {"Exp", "Pow"}); }

/// Follows weights to the products that they come to.
class Followers {
 public:
  explicit Followers(MatchContext& context) : context_(context), facts_(context.facts) {}

  const Node* unread(Value& weights) {
    values_.push_back({&weights, nullptr});
    const Node* found = nullptr;
    for (size_t i = 0; i < values_.size() && values_.size() < kMaxFollowers; ++i)
      for (const Use& use : values_[i].value->uses) {
        const Followed from = values_[i];
        Node* node = use.node;
        if (!node || node->graph != weights.graph || !node->output(0) || node->is("Shape")) continue;
        if (is_softmax(*node)) return nullptr;
        const bool is_sum = adds_up(*node, facts_);
        if (!found && is_computed_product(*node, facts_)) found = from.by ? from.by : node;
        if ((is_sum || !is_product(*node)) && goes_on(*node, use.input, from)) enter(*node, from, is_sum);
      }
    return found;
  }

 private:
  static constexpr size_t kMaxFollowers = 48;

  struct Followed {
    Value* value = nullptr;
    const Node* by = nullptr;  ///< what added them up, or was first
    bool is_sum = false;
  };

  /// True if another anchor has what NODE makes.
  bool is_softmax(Node& node) { return (may_be_softmax(node) || node.is("Einsum")) && softmax_at(node, context_); }

  /// False where other exponentials are told of for the same: those that are divided, or the first of two factors.
  bool goes_on(const Node& node, int input, const Followed& from) {
    if (makes_powers(node)) return false;
    return std::ranges::none_of(node.inputs, [&](Value* other) {
      if (!other || other == from.value || (!from.is_sum && (input == 0 || other != node.inputs[0]))) return false;
      const auto is_other = [this](Value& source) { return is_exponential(source, facts_) && is_of_scores(source, facts_); };
      return nearest_source(*other, is_other, facts_) != nullptr;
    });
  }

  void enter(const Node& node, const Followed& from, bool is_sum) {
    const bool is_first_sum = is_sum && !from.is_sum;
    for (Value* made : node.outputs) {
      if (!made || std::ranges::find(values_, made, &Followed::value) != values_.end()) continue;
      values_.push_back({made, from.by && !is_first_sum ? from.by : &node, from.is_sum || is_sum});
    }
  }

  MatchContext& context_;
  Facts& facts_;
  std::vector<Followed> values_;
};

}  // namespace

bool may_be_softmax(const Node& node) {
  const Value *first = node.input(0), *second = node.input(1);
  if (node.is("Softmax")) return true;
  if (node.is("Div"))
    return may_be_weights(first) || made_by(second, {"ReduceSum"}) || (may_be_product(first) && may_be_sum(second));
  if (node.is("Exp") || node.is("LpNormalization")) return true;
  if (node.is("Pow")) return may_be_number(first);
  if (!node.is("Mul")) return false;
  const bool is_behind_product =
      (may_be_product(first) && may_be_reciprocal(second)) || (may_be_product(second) && may_be_reciprocal(first));
  return may_be_weights(first) || may_be_weights(second) || is_behind_product || may_be_inverse_sum(first) ||
         may_be_inverse_sum(second);
}

bool is_of_scores(Value& value, Facts& facts) {
  return may_be_scores(value, [&](const Node& product) { return is_computed_product(product, facts); }, facts);
}

const Node* unread_weights(Value& weights, MatchContext& context) {
  return is_of_scores(weights, context.facts) ? Followers(context).unread(weights) : nullptr;
}

const Node* unread_exponentials(const Node& node, MatchContext& context) {
  return makes_powers(node) ? unread_weights(*node.outputs[0], context) : nullptr;
}

}  // namespace attn_opt
