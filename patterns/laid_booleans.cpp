#include "patterns/laid_booleans.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "src/match/permutation.h"

namespace attn_opt {
namespace {

constexpr int kMostLaidSteps = 16;

using Axes = std::vector<int64_t>;

/// An operator of two numbers, and what it makes of them.
struct NumberFunction {
  std::string_view op;
  double (*of)(double, double);
};

constexpr std::array kFunctions{
    NumberFunction{"Add", [](double a, double b) { return a + b; }},
    NumberFunction{"Sub", [](double a, double b) { return a - b; }},
    NumberFunction{"Mul", [](double a, double b) { return a * b; }},
    NumberFunction{"Equal", [](double a, double b) { return a == b ? 1.0 : 0.0; }},
    NumberFunction{"Greater", [](double a, double b) { return a > b ? 1.0 : 0.0; }},
    NumberFunction{"GreaterOrEqual", [](double a, double b) { return a >= b ? 1.0 : 0.0; }},
    NumberFunction{"Less", [](double a, double b) { return a < b ? 1.0 : 0.0; }},
    NumberFunction{"LessOrEqual", [](double a, double b) { return a <= b ? 1.0 : 0.0; }},
};

/// Of AXES, those of a value of SHAPE, the ones along which that has more than one element.
Axes without_ones(const Axes& axes, const Shape& shape) {
  Axes left;
  for (size_t i = 0; i < axes.size(); ++i)
    if (!shape[i].is(1)) left.push_back(axes[i]);
  return left;
}

/// The axes of NODE's input, which it moves alone, if AXES are those of its result; nullopt if they cannot be told.
std::optional<Axes> axes_before(const Node& node, const Axes& axes, Facts& facts) {
  const MaybeShape before = facts.shape(*node.inputs[0]), after = facts.shape(*node.outputs[0]);
  if (!before || !after || after->size() != axes.size()) return std::nullopt;
  Axes found(before->size(), LaidBooleans::kOneElement);
  if (const std::vector<int64_t> perm = permutation(node, before->size()); !perm.empty()) {
    for (size_t i = 0; i < perm.size(); ++i) found[static_cast<size_t>(perm[i])] = axes[i];
    return found;
  }
  if (node.is("Expand")) {
    if (before->size() > after->size()) return std::nullopt;
    for (size_t i = 0, more = after->size() - before->size(); i < before->size(); ++i)
      if (!(*before)[i].is(1)) found[i] = axes[i + more];
    return found;
  }
  if (!has(node, Trait::kRegroups)) return std::nullopt;
  // Axes of 1 come and go; what the others are told by is that they stay.
  const Axes kept = without_ones(axes, *after);
  size_t at = 0;
  for (size_t i = 0; i < before->size(); ++i) {
    if ((*before)[i].is(1)) continue;
    if (at == kept.size()) return std::nullopt;
    found[i] = kept[at++];
  }
  const auto is_one = [](const Dim& size) { return size.is(1); };
  Shape own = *before, made = *after;
  std::erase_if(own, is_one);
  std::erase_if(made, is_one);
  return own == made ? std::optional(found) : std::nullopt;
}

/// What NODE does to each element of its other operand, which is entered in VALUE; nullopt if it does something else.
std::optional<LaidStep> step_at(const Node& node, Value*& value, Facts& facts) {
  if (node.is("Cast") && node.input(0)) {
    value = node.inputs[0];
    return LaidStep{"Cast", static_cast<double>(facts.type(*node.outputs[0]))};
  }
  const auto op = std::ranges::find_if(kFunctions, [&](const NumberFunction& function) { return node.is(function.op); });
  if (op == kFunctions.end() || !node.input(0) || !node.input(1)) return std::nullopt;
  for (const size_t number : {1, 0})
    if (const auto compared = facts.uniform(*node.inputs[number])) {
      value = node.inputs[1 - number];
      return LaidStep{op->op, *compared, number == 0};
    }
  return std::nullopt;
}

/// AXES, those of what operators of one value and numbers make of VALUE, as those of VALUE; nullopt if its rank is not known.
std::optional<Axes> axes_of_operand(const Value& value, const Axes& axes, Facts& facts) {
  const MaybeShape shape = facts.shape(value);
  if (!shape || shape->size() > axes.size()) return std::nullopt;
  Axes own(axes.end() - std::ssize(*shape), axes.end());
  for (size_t i = 0; i < own.size(); ++i)
    if ((*shape)[i].is(1)) own[i] = LaidBooleans::kOneElement;
  return own;
}

/// LAID, made by NODE, as what that reads; nullopt if it reads more.
std::optional<LaidBooleans> laid_before(const Node& node, const LaidBooleans& laid, Facts& facts) {
  LaidBooleans before = laid;
  std::optional<Axes> axes;
  const Condition seen = laid.steps.empty() ? affirmed({laid.value, laid.is_true}, facts) : Condition{laid.value, laid.is_true};
  if (seen.value != laid.value) {
    before.value = seen.value;
    before.is_true = seen.is_true;
    axes = axes_of_operand(*seen.value, laid.axes, facts);
  } else if (has(node, Trait::kMoves) && node.input(0)) {
    before.value = &canonical(*node.inputs[0], facts);
    axes = axes_before(node, laid.axes, facts);
  } else if (const auto step = step_at(node, before.value, facts)) {
    before.steps.push_back(*step);
    before.value = &canonical(*before.value, facts);
    axes = axes_of_operand(*before.value, laid.axes, facts);
  }
  if (!axes) return std::nullopt;
  before.axes = *std::move(axes);
  return before;
}

/// What STEPS make of TRUTH, 0 or 1; NaN where that hangs on how a type wraps round.
double made_of(double truth, const std::vector<LaidStep>& steps) {
  constexpr std::array kUnsigned{onnx::TensorProto::UINT8, onnx::TensorProto::UINT16, onnx::TensorProto::UINT32,
                                 onnx::TensorProto::UINT64};
  double number = truth;
  bool is_unsigned = false;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const auto function = std::ranges::find(kFunctions, step->op, &NumberFunction::op);
    if (function != kFunctions.end()) {
      number = step->is_first ? function->of(step->number, number) : function->of(number, step->number);
    } else {
      const auto type = static_cast<DataType>(step->number);
      is_unsigned = std::ranges::find(kUnsigned, type) != kUnsigned.end();
      number = type == onnx::TensorProto::BOOL ? (number != 0 ? 1 : 0) : is_floating(type) ? number : std::trunc(number);
    }
    if (is_unsigned && number < 0) return NAN;
  }
  return number;
}

/// STEPS of booleans, which make these again or what they are not, are none.
void drop_steps_of_booleans(LaidBooleans& laid, Facts& facts) {
  if (laid.steps.empty() || facts.type(*laid.value) != onnx::TensorProto::BOOL) return;
  const double of_false = made_of(0, laid.steps), of_true = made_of(1, laid.steps);
  const bool are_same = of_false == 0 && of_true == 1, are_others = of_false == 1 && of_true == 0;
  if (!are_same && !are_others) return;
  laid.steps.clear();
  laid.is_true ^= are_others;
}

}  // namespace

LaidBooleans laid_booleans(const Condition& condition, Facts& facts) {
  LaidBooleans found{condition.value, condition.is_true};
  const MaybeShape shape = facts.shape(*condition.value);
  if (!shape) return found;
  for (size_t i = shape->size(); i > 0; --i) found.axes.push_back(static_cast<int64_t>(i) - 1);
  found.axes = *axes_of_operand(*condition.value, found.axes, facts);
  std::optional<LaidBooleans> next = found;
  for (int step = 0; step < kMostLaidSteps && next; ++step) {
    found = *std::move(next);
    drop_steps_of_booleans(found, facts);
    next = found.value->producer ? laid_before(*found.value->producer, found, facts) : std::nullopt;
  }
  return found;
}

}  // namespace attn_opt
