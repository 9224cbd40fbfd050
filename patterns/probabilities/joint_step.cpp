#include "patterns/probabilities/joint_step.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "attn_opt/internal/mask_contents.h"
#include "attn_opt/operator_traits.h"
#include "patterns/inner_values.h"
#include "patterns/linear_function.h"
#include "patterns/scores/form_reader.h"
#include "patterns/softmax/row_reduction.h"
#include "src/match/operator_map.h"

namespace attn_opt {
namespace {

constexpr int kMaxJointNodes = 12;

/// True if READER takes VALUE for an operand that forms or functions of it follow.
bool reads_form(const Reader& reader, const Value& value) {
  if (!reader.node || reader.node->graph != value.graph) return false;
  if (bends(*reader.node) && !reader.node->is("Where")) return true;
  const std::vector<size_t> operands = form_operands(*reader.node);
  return std::ranges::find(operands, static_cast<size_t>(reader.input)) != operands.end();
}

/// True if NODE leaves each number from 0 to 1 as it is.
bool keeps_shares(const Node& node, size_t input, Facts& facts) {
  if (!node.domain().empty() || input > 1 || (input > 0 && !has(node, Trait::kSelects))) return false;
  static constexpr OperatorSet kKeepPositive = {"Relu", "Abs", "Elu", "Celu", "LeakyRelu"};
  if (kKeepPositive.has(node)) return true;
  if (node.is("Clip")) return clip_bound(node, 1, facts).value_or(0) <= 0 && clip_bound(node, 2, facts).value_or(1) >= 1;
  const bool bounds = (node.is("Max") || node.is("Min")) && node.inputs.size() == 2;
  const auto bound = bounds ? facts.uniform(*node.inputs[1 - input]) : std::nullopt;
  return bound && (node.is("Max") ? *bound <= 0 : *bound >= 1);
}

/// What the only one of READERS makes of VALUE, shares of a row, if it bounds them where they are; null if it does more. Where
/// they are divided behind V they are exponentials, which may be more than 1.
Value* bounded_shares(const Readers& readers, Value& value, bool are_divided, Facts& facts) {
  if (!readers.only_one() || !readers.all[0].node) return nullptr;
  const Node* maker = are_divided ? unmoved(value, facts).producer : nullptr;
  Node& node = *readers.all[0].node;
  const bool may_be_other = are_divided && (!maker || !maker->is("Exp") || node.is("Clip") || node.is("Min"));
  const bool keeps = node.graph == value.graph && keeps_shares(node, static_cast<size_t>(readers.all[0].input), facts);
  return keeps && !may_be_other ? node.outputs[0] : nullptr;
}

class JointReader {
 public:
  JointReader(Value& value, MatchContext& context) : value_(value), context_(context), facts_(context.facts) {}

  std::optional<JointStep> run(const Readers& readers) {
    if (!enter(readers)) return std::nullopt;
    std::optional<JointStep> nearest;
    for (int step = 0; step < kMaxJointNodes && !made_.empty(); ++step) {
      auto found = made_.size() == 1 ? step_to(*made_.front()) : std::nullopt;
      if (found && !found->one) return found;
      if (found && !nearest) nearest = found;
      Value& first = **std::ranges::min_element(made_, {}, [](const Value* made) { return made->producer->position; });
      std::erase(made_, &first);
      const Readers further = readers_of(first, facts_);
      if (further.is_output || !enter(further)) break;
    }
    return nearest;
  }

 private:
  /// Notes what READERS make; false if one of them is no node of forms.
  bool enter(const Readers& readers) {
    for (const Reader& reader : readers.all) {
      if (!reads_form(reader, value_)) return false;
      if (Value* made = reader.node->outputs[0]; std::ranges::find(made_, made) == made_.end()) made_.push_back(made);
    }
    return true;
  }

  std::optional<JointStep> step_to(Value& made) {
    const MaybeShape before = facts_.shape(value_), after = facts_.shape(made);
    if (!before || !after || *before != *after || facts_.type(made) != facts_.type(value_)) return std::nullopt;
    auto step = step_of_form(made);
    return step ? step : step_of_function(made);
  }

  std::optional<JointStep> step_of_form(Value& made) {
    FormReader forms(*made.producer, context_);
    const auto form = forms.in_terms_of(value_, made);
    if (!form || form->size() > 2) return std::nullopt;
    for (size_t i = 0; i < form->size(); ++i)
      if (forms.number_added(*form, i) != 0) return std::nullopt;
    InnerValues inner(*made.producer, context_);
    const DataType type = facts_.type(value_);
    const double scale = form->back().scale;
    if (form->size() == 1) return times(scale, made);
    if (form->front().scale != 0 || scale != 1 || form->front().guard.size() != 1) return std::nullopt;
    const Literal& dropped = form->front().guard.front();
    std::vector<Value*> operands{dropped.condition, &value_, inner.build().scalar(0, type)};
    if (dropped.holds) std::swap(operands[1], operands[2]);
    Value* selected = inner.build().node("Where", operands);
    return JointStep{&made, Reader{selected->producer, dropped.holds ? 2 : 1, &value_}};
  }

  /// |x| Sign(x)  =>  x      Max(x, 0) - Max(-x, 0)  =>  x
  std::optional<JointStep> step_of_function(Value& made) {
    const auto function = linear_function_in(made, facts_);
    const bool is_of_value = function && &canonical(*function->value, facts_) == &canonical(value_, facts_);
    return is_of_value && function->number == 0 ? times(function->factor, made) : std::nullopt;
  }

  /// MADE, which is SCALE times the value.
  std::optional<JointStep> times(double scale, Value& made) {
    if (scale == 1) return JointStep{&made};
    InnerValues inner(*made.producer, context_);
    Value* product = inner.build().node("Mul", {&value_, inner.build().scalar(scale, facts_.type(value_))});
    return JointStep{&made, Reader{product->producer, 0, &value_}};
  }

  Value& value_;
  MatchContext& context_;
  Facts& facts_;
  std::vector<Value*> made_;  ///< of VALUE, that what reads it was not looked at
};

}  // namespace

std::optional<JointStep> joint_step(const Readers& readers, Value& value, const KnownShares& shares, MatchContext& context) {
  Value* bounded = shares.are_shares ? bounded_shares(readers, value, shares.are_divided_late, context.facts) : nullptr;
  return bounded ? JointStep{bounded} : JointReader(value, context).run(readers);
}

}  // namespace attn_opt
