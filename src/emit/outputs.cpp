#include "src/emit/outputs.h"

#include <utility>

namespace attn_opt {
namespace {

/// EXISTING, of the layout AXES, is made from MADE, an output of the node in FORM.
Matched<void> take_over(const OutputView& existing, Value& made, IoForm form, Site& site) {
  const LayoutChange change(grouping_for(existing.axes, form), grouping_of(existing.axes));
  ATTN_OPT_MATCH(Value * value, change.write(made, existing.axes, site));
  const DataType type = site.facts.type(*existing.value);
  if (type != onnx::TensorProto::UNDEFINED && type != site.sdpa.type)
    value = site.build.node("Cast", {value}, {GraphBuilder::attribute("to", int64_t{type})});
  site.build.edit().take_over(*existing.value, *value);
  return {};
}

/// The model's own concatenation of past and new rows, if it is what the node's output is.
Value* present_of(const OperandView& view, Site& site) {
  if (!view.present || view.present->graph != &site.build.edit().graph()) return nullptr;
  const Shape* present = site.facts.shape(*view.present);
  const Shape* past = site.facts.shape(*view.past);
  if (!present || !past || present->size() != 4) return nullptr;
  for (size_t axis : {0, 1, 3})
    if (!may_be_equal((*present)[axis], (*past)[axis])) return nullptr;
  return may_be_equal((*present)[2], (*past)[2] + view.axes.size(Role::kRow)) ? view.present : nullptr;
}

/// True unless ONNX's shape inference finds a wrong shape of qk_matmul_output: it forgets a past of unknown length where the
/// number of new keys is known.
bool infers_scores(const WritingPlan& plan, Facts& facts) {
  if (!plan.has_past || !plan.k->axes.size(Role::kRow).is_constant()) return true;
  return (*facts.shape(*plan.k->past))[2].is_constant();
}

/// COPY's value is made from the operand itself.
Matched<void> take_over_copy(const OperandCopy& copy, Site& site) {
  const AxisMap& axes = copy.of.axes;
  const LayoutChange change(grouping_of(axes), grouping_for(axes, IoForm::k4d));
  ATTN_OPT_MATCH(Value * made, change.write(*copy.of.value, axes, site));
  if (made == copy.of.value) made = site.build.new_node("Identity", {made}, {true}, {})->outputs[0];
  site.build.edit().take_over(*copy.value, *made);
  return {};
}

}  // namespace

FurtherOutputs further_outputs(const WritingPlan& plan, Further wanted, Site& site) {
  FurtherOutputs further;
  if (wanted == Further::kNone) return further;
  if (plan.has_past && wanted == Further::kAll) {
    further.present_key = present_of(*plan.k, site);
    further.present_value = present_of(*plan.v, site);
  }
  const Graph* graph = &site.build.edit().graph();
  const Sdpa& sdpa = site.sdpa;
  const bool is_inferred = infers_scores(plan, site.facts) || site.match.anchor->is("Attention");
  if (!is_inferred) return further;
  if (sdpa.scores_output && sdpa.scores_output->graph == graph) {
    further.scores = sdpa.scores_output;
    further.qk_matmul_output_mode = sdpa.scores_output_mode;
  } else if (sdpa.probabilities && sdpa.probabilities->value->graph == graph &&
             site.facts.type(*sdpa.probabilities->value) == sdpa.type) {
    further.probabilities = &*sdpa.probabilities;
    further.qk_matmul_output_mode = 3;
  }
  return further;
}

Matched<void> take_over_outputs(const WritingPlan& plan, const FurtherOutputs& further, const Node& attention,
                                Site& site) {
  Edit& edit = site.build.edit();
  ATTN_OPT_DONE(take_over(*plan.output, *attention.output(0), plan.form, site));
  for (const OperandCopy& copy : site.sdpa.copies) ATTN_OPT_DONE(take_over_copy(copy, site));
  if (further.present_key) edit.take_over(*further.present_key, *attention.output(1));
  if (further.present_value && further.present_value != further.present_key)
    edit.take_over(*further.present_value, *attention.output(2));
  if (further.scores) edit.take_over(*further.scores, *attention.output(3));
  if (further.probabilities)
    ATTN_OPT_DONE(take_over(*further.probabilities, *attention.output(3), IoForm::k4d, site));
  return {};
}

}  // namespace attn_opt
