#include "patterns/laid_booleans.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "attn_opt/canonical.h"
#include "patterns/softmax/row_reduction.h"

namespace attn_opt {
namespace {

constexpr int kMostLaidSteps = 16;

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

/// LAID, which a node makes of what it moves, as what operators of one value and a number, or none, make it of; nullopt if it
/// is made of more. Its axes are those of its own value then.
std::optional<LaidBooleans> laid_before(const LaidBooleans& laid, Facts& facts) {
  LaidBooleans before = laid;
  const Condition seen = laid.steps.empty() ? affirmed({laid.value, laid.is_true}, facts) : Condition{laid.value, laid.is_true};
  if (seen.value != laid.value) {
    before.value = seen.value;
    before.is_true = seen.is_true;
  } else {
    const auto step = laid.value->producer ? step_at(*laid.value->producer, before.value, facts) : std::nullopt;
    if (!step) return std::nullopt;
    before.steps.push_back(*step);
    before.value = &canonical(*before.value, facts);
  }
  const MaybeShape shape = facts.shape(*before.value);
  if (!shape || shape->size() > before.axes.size()) return std::nullopt;
  before.axes.erase(before.axes.begin(), before.axes.end() - std::ssize(*shape));
  for (size_t i = 0; i < shape->size(); ++i)
    if ((*shape)[i].is(1)) before.axes[i] = LaidBooleans::kOneElement;
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
  const size_t rank = shape->size();
  found.axes = placed_in(*condition.value, rank, facts).axes;
  std::optional<LaidBooleans> next = found;
  for (int step = 0; step < kMostLaidSteps && next; ++step) {
    const RowReduction unmoved = before_moves({next->value, next->axes}, facts);
    next->value = unmoved.value;
    next->axes = unmoved.axes;
    drop_steps_of_booleans(*next, facts);
    found = *std::move(next);
    next = laid_before(found, facts);
  }
  for (int& axis : found.axes)
    if (axis != LaidBooleans::kOneElement) axis = static_cast<int>(rank) - 1 - axis;
  return found;
}

}  // namespace attn_opt
