#include "patterns/laid_booleans.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "attn_opt/canonical.h"
#include "patterns/linear_function.h"
#include "patterns/softmax/row_reduction.h"

namespace attn_opt {
namespace {

constexpr int kMostLaidSteps = 16;

/// What NODE does to each element of the one input that is no number, which is entered in VALUE; nullopt if it does something
/// else.
std::optional<LaidStep> step_at(const Node& node, Value*& value, Facts& facts) {
  if (!is_of_truths(node, facts)) return std::nullopt;
  LaidStep step{&node, node.inputs.size(), {}, facts.type(*node.outputs[0])};
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const auto number = facts.uniform(*node.inputs[i]);
    if (number)
      step.numbers.push_back(*number);
    else if (std::exchange(step.input, i) != node.inputs.size())
      return std::nullopt;
  }
  if (step.input == node.inputs.size()) return std::nullopt;
  value = node.inputs[step.input];
  return step;
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

/// What STEPS make of TRUTH, 0 or 1; NaN where that is not known.
double made_of(double truth, const std::vector<LaidStep>& steps, Facts& facts) {
  double number = truth;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    std::vector<double> of = step->numbers;
    of.insert(of.begin() + static_cast<std::ptrdiff_t>(step->input), number);
    number = truths_made_by(*step->node, of, facts);
  }
  return number;
}

/// STEPS of booleans, which make these again or what they are not, are none.
void drop_steps_of_booleans(LaidBooleans& laid, Facts& facts) {
  if (laid.steps.empty() || facts.type(*laid.value) != onnx::TensorProto::BOOL) return;
  const double of_false = made_of(0, laid.steps, facts), of_true = made_of(1, laid.steps, facts);
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

LaidBooleans without_unit_axes(LaidBooleans laid, const Shape& frame) {
  for (int& axis : laid.axes)
    if (axis != LaidBooleans::kOneElement && axis < std::ssize(frame))
      axis -= static_cast<int>(std::count_if(frame.end() - axis, frame.end(), [](const Dim& size) { return size.is(1); }));
  return laid;
}

}  // namespace attn_opt
