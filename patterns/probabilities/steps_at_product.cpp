#include "patterns/probabilities/steps_at_product.h"

#include <algorithm>
#include <string>
#include <utility>

#include "attn_opt/canonical.h"
#include "patterns/inner_values.h"
#include "patterns/operands/operand_walk.h"
#include "patterns/preconditions.h"

namespace attn_opt {
namespace {

tl::unexpected<Miss> lies_otherwise(const LinearStep& step, const char* side) {
  return missed("probabilities.operator", step.node, "'" + step.operand().name + "' lies otherwise than " + side);
}

/// AXES of what is LEFT of a value of the shape WHOLE, of which columns may be cut off: those of that value.
std::optional<AxisMap> before_cut(const AxisMap& axes, MaybeShape whole, MaybeShape left) {
  if (!whole || !left || whole->size() != left->size()) return std::nullopt;
  for (size_t axis = 0; axis < whole->size(); ++axis)
    if ((*whole)[axis] != (*left)[axis]) return axes.with_size(Role::kFeature, axis, (*whole)[axis]);
  return axes;
}

/// The factors of a site.
class StepFactors {
 public:
  StepFactors(const Reading& reading, MatchContext& context)
      : walk_(reading.probabilities),
        context_(context),
        maps_(factor_maps(*walk_.probabilities, reading.value_product, context.facts)) {}

  FactorSide values() const { return maps_ ? maps_->values : FactorSide(); }
  FactorSide output() const { return maps_ ? maps_->output : FactorSide(); }

  /// What STEP multiplies with, as it broadcasts to the probabilities there.
  Broadcast of(const LinearStep& step) {
    const auto axes = maps_ ? axes_at(step.at) : std::nullopt;
    return axes ? broadcast_of(step.operand(), {walk_.way[step.at], *axes}, context_) : Broadcast();
  }

 private:
  /// The axes of the value AT of the way down.
  std::optional<AxisMap> axes_at(size_t at) {
    std::optional<AxisMap> axes = maps_->probabilities.axes;
    for (size_t next = walk_.way.size() - 1; axes && next > at; --next) {
      const Value& above = canonical(*walk_.way[next - 1], context_.facts);
      const auto views = walk_movement({walk_.way[next], *axes}, context_).views;
      const auto found = std::ranges::find_if(
          views, [&](const OperandView& view) { return &canonical(*view.value, context_.facts) == &above; });
      axes = found != views.end() ? found->axes
                                  : before_cut(*axes, context_.facts.shape(above), context_.facts.shape(*walk_.way[next]));
    }
    return axes;
  }

  const ProbabilityWalk& walk_;
  MatchContext& context_;
  std::optional<FactorMaps> maps_;
};

/// The steps of rows, of OUTPUT, a view of Y.
Matched<std::vector<OutputStep>> row_steps(const ProbabilityWalk& walk, StepFactors& factors, const OutputView& output,
                                           bool may_copy, MatchContext& context) {
  std::vector<OutputStep> steps;
  for (const LinearStep& step : walk.steps) {
    if (!step.is_of_rows) continue;
    auto made = beside_product(step, factors.of(step), {output.value, output.axes}, may_copy, *walk.product, context);
    if (!made) return lies_otherwise(step, "Y");
    steps.push_back(*std::move(made));
  }
  return steps;
}

/// Enters in SDPA the steps of rows, of the first of VIEWS of Y that takes them as they are, or else of one that takes copies.
Matched<void> add_row_steps(const ProbabilityWalk& walk, StepFactors& factors, const std::vector<OutputView>& views, Sdpa& sdpa,
                            MatchContext& context) {
  for (const bool may_copy : {false, true})
    for (size_t at = 0; at < views.size(); ++at) {
      auto steps = row_steps(walk, factors, views[at], may_copy, context);
      if (!steps && may_copy && at + 1 == views.size()) return tl::unexpected(steps.error());
      if (!steps) continue;
      sdpa.output_steps = *std::move(steps);
      if (!sdpa.output_steps.empty()) sdpa.outputs.front() = sdpa.outputs[at];
      return {};
    }
  return {};
}

/// OUTPUT of the product of READING, or what the model makes of it by a Reshape; nullopt if that does not regroup its factors.
std::optional<FactorSide> output_made(const Reading& reading, FactorSide output, Facts& facts) {
  Value& product = *reading.value_product.output.value;
  Value* summed = reading.probabilities.summed;
  const MaybeShape own = facts.shape(product), whole = summed ? facts.shape(*summed) : nullptr;
  if (!own || !whole || own->size() == whole->size()) return FactorSide{&product, std::move(output.axes)};
  auto axes = output.axes.regrouped(*whole);
  return axes ? std::optional(FactorSide{summed, *std::move(axes)}) : std::nullopt;
}

}  // namespace

Matched<ProductSide> stepped_values(Reading& reading, MatchContext& context) {
  ProbabilityWalk& walk = reading.probabilities;
  ProductSide values = reading.value_product.value;
  if (walk.steps.empty()) return values;
  StepFactors factors(reading, context);
  for (LinearStep& step : walk.steps) {
    if (step.is_of_rows || step.adds) continue;
    const Broadcast factor = factors.of(step);
    auto made = beside_product(step, factor, {values.value, factors.values().axes}, true, *walk.product, context);
    if (!made && (factor.views.empty() || varies(factor, Role::kFeature))) return lies_otherwise(step, "V");
    step.is_of_rows = !made;
    if (!made) continue;
    std::ranges::replace(made->operands, static_cast<Value*>(nullptr), values.value);
    values.value = InnerValues(*walk.product, context).build().node(made->op_type, made->operands);
  }
  return values;
}

void assume_of_steps(const ProbabilityWalk& walk, Sdpa& sdpa, Facts& facts) {
  std::vector<TensorScale> scales;
  const Node *drops = nullptr, *adds = nullptr, *empties = nullptr;
  for (const LinearStep& step : walk.steps) {
    if (step.adds) adds = step.node;
    if (step.is_of_rows && step.node->is("Where")) empties = step.node;
    if (step.is_of_rows || step.adds) continue;
    if (step.node->is("Where"))
      drops = step.node;
    else
      scales.push_back({&step.operand(), step.node->is("Div"), true, {}});
  }
  if (drops) assume("scores-finite", "'" + drops->outputs[0]->name + "' makes NaN 0 at the keys that it drops", sdpa);
  if (empties)
    sdpa.preconditions.push_back(
        {"values-finite", false, "'" + empties->outputs[0]->name + "' makes rows 0 behind the node, of NaN of V too", true});
  if (walk.drops_values)
    sdpa.preconditions.push_back({"values-finite", false, "what is padded beside the probabilities makes NaN of V", true});
  if (adds) assume("values-finite", "V times each operand of '" + adds->outputs[0]->name + "' may be Inf less Inf", sdpa);
  if (auto factors = factors_in_range(walk.values_factor, scales, sdpa.type, "V", facts))
    sdpa.preconditions.push_back(*std::move(factors));
}

Matched<void> add_output_steps(const Reading& reading, Sdpa& sdpa, MatchContext& context) {
  const ProbabilityWalk& walk = reading.probabilities;
  if (walk.steps.empty()) return {};
  StepFactors factors(reading, context);
  const auto output = output_made(reading, factors.output(), context.facts);
  if (!output) return lies_otherwise(walk.steps.front(), "Y");
  std::vector<OutputView> views = walk_output(*output->value, output->axes, context);
  const bool adds = std::ranges::any_of(walk.steps, &LinearStep::adds);
  views.resize(adds ? 1 : std::min(views.size(), sdpa.outputs.size()));
  ATTN_OPT_DONE(add_row_steps(walk, factors, views, sdpa, context));
  for (const LinearStep& step : walk.steps) {
    if (!step.adds) continue;
    ATTN_OPT_MATCH(OutputStep made, sum_behind_product(step, walk.steps, *walk.probabilities, *walk.product, context));
    sdpa.output_steps.push_back(std::move(made));
  }
  return {};
}

}  // namespace attn_opt
