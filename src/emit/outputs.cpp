#include "src/emit/outputs.h"

#include <algorithm>
#include <utility>

#include "src/emit/equal_sizes.h"
#include "src/emit/joint_batch.h"
#include "src/emit/joint_sizes.h"
#include "src/match/facts/declared_type.h"

namespace attn_opt {
namespace {

/// VALUE behind STEPS.
Value* behind(const std::vector<OutputStep>& steps, Value* value, Site& site) {
  for (const OutputStep& step : steps) {
    std::vector<Value*> operands = step.operands;
    std::ranges::replace(operands, static_cast<Value*>(nullptr), value);
    value = site.build.node(step.op_type, operands, {step.attributes.begin(), step.attributes.end()});
  }
  return value;
}

/// EXISTING is made from MADE, an output of the node in FORM, by STEPS, of which the first reads it with the axes OWN.
Matched<void> take_over(const OutputView& existing, Value& made, IoForm form, Site& site, const AxisMap& own,
                        const std::vector<OutputStep>& steps = {}) {
  const AxisMap read = of_joint_batch(own, site);
  const LayoutChange change(grouping_for(read, form), read.grouping());
  ATTN_OPT_MATCH(Value * value, change.write(made, read, site));
  const DataType type = site.facts.type(*existing.value);
  if (type != onnx::TensorProto::UNDEFINED && type != site.sdpa.type)
    value = site.build.node("Cast", {value}, {GraphBuilder::attribute("to", int64_t{type})});
  take_over_once(*existing.value, *behind(steps, value, site), site.build);
  return {};
}

/// The model's own concatenation of past and new rows, if it is what the node's output is.
Value* present_of(const OperandView& view, Site& site) {
  if (!view.present || view.present->graph != &site.build.edit().graph()) return nullptr;
  const MaybeShape present = site.facts.shape(*view.present);
  const MaybeShape past = site.facts.shape(*view.past);
  if (!present || !past || present->size() != 4) return nullptr;
  for (size_t axis : {0, 1, 3})
    if (!may_be_equal((*present)[axis], (*past)[axis])) return nullptr;
  return may_be_equal((*present)[2], (*past)[2] + view.axes.size(Role::kRow)) ? view.present : nullptr;
}

/// Declares EXISTING: inference may have found its shape by what the node stands for. A name that the model does not give one
/// of its sizes stays away where that may be another: runtimes reuse buffers by names.
void declare(Value& existing, Site& site) {
  const MaybeShape shape = site.facts.shape(existing);
  if (!shape) return;
  onnx::TypeProto type = declared_type(site.facts.type(existing), *shape);
  for (size_t axis = 0; !existing.declared_type && axis < shape->size(); ++axis)
    if (!(*shape)[axis].is_constant() && is_one_of_equals((*shape)[axis], existing, {}, site.facts))
      type.mutable_tensor_type()->mutable_shape()->mutable_dim(static_cast<int>(axis))->clear_value();
  site.build.edit().declare(existing, std::move(type));
}

/// True if VALUE, an output of the model, is declared with a name for a size that is a number: what is declared of it stays.
bool is_declared_open(const Value& value, Facts& facts) {
  const MaybeShape shape = facts.shape(value);
  if (!value.is_output || !value.declared_type || !shape) return false;
  const auto& declared = value.declared_type->tensor_type().shape().dim();
  for (int axis = 0; axis < std::min(declared.size(), static_cast<int>(shape->size())); ++axis)
    if (!declared[axis].has_dim_value() && (*shape)[static_cast<size_t>(axis)].is_constant()) return true;
  return false;
}

/// True where ONNX's shape inference finds the number of keys of qk_matmul_output: that of V. One that is no number it takes
/// for 0, also where it is only said to be none, and a past of unknown length before a known number of new keys it forgets.
bool infers_keys(const WritingPlan& plan, Facts& facts) {
  const auto has_number = [](const OperandView& view) { return view.axes.size(Role::kRow).is_constant(); };
  if (!has_number(*plan.k) || !has_number(*plan.v) || is_declared_open(*plan.v->value, facts)) return false;
  return !plan.has_past || facts.shape(*plan.k->past).known()[2].is_constant();
}

/// qk_matmul_output of ATTENTION with the sizes that it has at run time: inference does not look through a Reshape to what is
/// computed. The Max hides that one size alone is: ONNX Runtime's optimiser writes -1 for that, which the inferred 0 makes 0
/// again.
Value* scores_of(const WritingPlan& plan, const Node& attention, Site& site) {
  Value* made = attention.output(3);
  if (infers_keys(plan, site.facts)) return made;
  Value* sizes = site.build.node("Max", {site.sizes.sizes({0, 0, 0, site.scores[3]}), site.build.ints({0})});
  return site.build.node("Reshape", {made, sizes});
}

/// Zeros in the place of SIZES, of which one at least is known in a run alone, that no inference sees.
Value* unseen_zeros(const Shape& sizes, Site& site) {
  return site.build.node("Min", {site.sizes.sizes(sizes), site.build.ints({0})});
}

/// COPY's value is made from the operand itself.
Matched<void> take_over_copy(const OperandCopy& copy, Site& site) {
  const AxisMap& axes = copy.of.axes;
  const LayoutChange change(axes.grouping(), grouping_for(axes, IoForm::k4d));
  ATTN_OPT_MATCH(Value * made, change.write(*copy.of.value, axes, site));
  if (made == copy.of.value) made = site.build.new_node("Identity", {made}, {true}, {})->outputs[0];
  take_over_once(*copy.value, *made, site.build);
  return {};
}

/// True if the node's scores have no more batches or heads than Q and K give them, or the model has: V, or a mask, may bring
/// more.
bool keeps_width(const WritingPlan& plan, const Site& site) {
  const auto joint = [&](Role role) { return joint_size(plan.q->axes.size(role), plan.k->axes.size(role), site.facts); };
  const Dim heads = plan.kv_group == 1 ? joint(Role::kHead) : site.sdpa.query_heads;
  return (site.scores[0] == site.sdpa.batch || site.scores[0] == joint(Role::kBatch)) &&
         (site.scores[1] == site.sdpa.query_heads || site.scores[1] == heads);
}

/// True if READ, scores or probabilities, has as many queries and keys as those of the node: a mask or V may bring more.
bool keeps_rows(const OutputView& read, const Site& site) {
  return site.facts.may_assume() ||
         (read.axes.size(Role::kRow) == site.scores[2] && read.axes.size(Role::kFeature) == site.scores[3]);
}

/// True if the node can give VIEW, one of the site's values, where it stands.
bool can_give(const std::optional<OutputView>& view, const Site& site) {
  return view && view->value->graph == &site.build.edit().graph() && keeps_rows(*view, site);
}

}  // namespace

void take_over_once(Value& existing, Value& made, GraphBuilder& build) {
  const auto& takeovers = build.edit().takeovers();
  const bool is_taken = std::ranges::find(takeovers, &made, &Edit::Takeover::made) != takeovers.end();
  const bool is_new = made.producer && made.producer->placement == Placement::kUnplaced;
  Value* own = is_taken || !is_new ? build.new_node("Identity", {&made}, {true}, {})->outputs[0] : &made;
  build.edit().take_over(existing, *own);
}

FurtherOutputs further_outputs(const WritingPlan& plan, Further wanted, Site& site) {
  FurtherOutputs further;
  if (wanted == Further::kNone) return further;
  if (plan.has_past && wanted != Further::kScores) {
    further.present_key = present_of(*plan.k, site);
    further.present_value = present_of(*plan.v, site);
  }
  const Sdpa& sdpa = site.sdpa;
  if (wanted == Further::kPresents) return further;
  if (!keeps_width(plan, site) || (!infers_keys(plan, site.facts) && !site.sizes.knows(site.scores[3]))) return further;
  if (can_give(sdpa.scores_output, site)) {
    further.scores = &*sdpa.scores_output;
    further.qk_matmul_output_mode = sdpa.scores_output_mode;
  } else if (can_give(sdpa.probabilities, site) && site.facts.type(*sdpa.probabilities->value) == sdpa.type) {
    further.scores = &*sdpa.probabilities;
    further.qk_matmul_output_mode = 3;
  }
  return further;
}

void hide_query_sizes(const WritingPlan& plan, const FurtherOutputs& further, Operands& operands, Site& site) {
  if (!further.wants_scores() || infers_keys(plan, site.facts)) return;
  Shape copied(operands.q.shape.size(), 0);
  copied.back() = site.scores[3];
  operands.q.value = site.build.node("Reshape", {operands.q.value, unseen_zeros(copied, site)});
}

Matched<void> take_over_outputs(const WritingPlan& plan, const FurtherOutputs& further, const Node& attention, Value& y,
                                Site& site) {
  Edit& edit = site.build.edit();
  const Sdpa& sdpa = site.sdpa;
  const bool is_mapped = !sdpa.output_steps.empty() && sdpa.output_steps.front().axes;
  const AxisMap& axes_of_y = is_mapped ? *sdpa.output_steps.front().axes : plan.output->axes;
  ATTN_OPT_DONE(take_over(*plan.output, y, plan.form, site, axes_of_y, sdpa.output_steps));
  declare(*plan.output->value, site);
  for (const OperandCopy& copy : sdpa.copies) ATTN_OPT_DONE(take_over_copy(copy, site));
  // Inference finds no present where it cannot tell that K has as many rows as V.
  for (Value* present : {further.present_key, further.present_value})
    if (present && !present->is_output) declare(*present, site);
  if (further.present_key) edit.take_over(*further.present_key, *attention.output(1));
  if (further.present_value && further.present_value != further.present_key)
    edit.take_over(*further.present_value, *attention.output(2));
  if (!further.wants_scores()) return {};
  declare(*further.scores->value, site);
  return take_over(*further.scores, *scores_of(plan, attention, site), IoForm::k4d, site, further.scores->axes);
}

}  // namespace attn_opt
