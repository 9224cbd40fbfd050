#include "src/emit/operands.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "src/emit/equal_sizes.h"
#include "src/emit/frame.h"
#include "src/emit/joint_batch.h"
#include "src/emit/joint_sizes.h"

namespace attn_opt {
namespace {

/// The axes of VIEW, whose rows are the ROWS of the scores, with the sizes that its value has in each run; nullopt if these are
/// VIEW's own. Scores that were taken to be of such a size are of that.
std::optional<AxisMap> axes_of_each_run(const OperandView& view, Site::Axis rows, Site& site) {
  const MaybeShape taken = site.facts.assumptions().empty() ? nullptr : site.facts.shape(*view.value);
  if (!taken.has_rank(view.axes.rank())) return std::nullopt;
  Shape shape = *taken;
  join_equals(shape, *view.value, site.facts);
  std::optional<AxisMap> axes;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const std::span<const int> held = view.axes.axis(axis);
    if (shape[axis] == (*taken)[axis] || held.empty()) continue;
    const Role role = view.axes.factors()[static_cast<size_t>(held.front())].role;
    auto changed = (axes ? *axes : view.axes).with_size(role, axis, shape[axis]);
    if (!changed) continue;
    axes = std::move(changed);
    const Site::Axis of_scores = role == Role::kBatch ? Site::kBatch : role == Role::kHead ? Site::kHeads : rows;
    if (role != Role::kFeature && site.scores[of_scores] == (*taken)[axis]) site.scores[of_scores] = shape[axis];
  }
  return axes;
}

Matched<Placed> write_operand(const OperandView& own, Site::Axis rows, IoForm form, Site& site) {
  ATTN_OPT_MATCH(const OperandView view, of_joint_batch(own, site));
  const std::optional<AxisMap> broadcast = axes_of_each_run(view, rows, site);
  const AxisMap& axes = broadcast ? *broadcast : view.axes;
  const Grouping target = grouping_for(axes, form);
  const LayoutChange change(axes.grouping(), target);
  ATTN_OPT_MATCH(Value * value, change.write(*site.cast(*view.value), axes, site));
  return Placed{value, shape_of(axes, target)};
}

/// A factor of shape (…, 1, S or 1) of the scores, as (…, S or 1, 1) beside K.
Matched<Value*> beside_key(const Placed& factor, const WritingPlan& plan, Site& site) {
  const Shape& shape = factor.shape;
  const size_t rank = shape.size();
  const bool fits = (rank < 2 || shape[rank - 2].is(1)) && (rank < 3 || plan.kv_group == 1 || shape[rank - 3].is(1)) &&
                    (rank == 0 || shape[rank - 1].is(1) || !plan.has_past);
  if (!fits) return missed("emit.tensor-scale", factor.value->producer, to_string(shape) + " beside K");
  Value* value = factor.value;
  if (rank == 0 || shape[rank - 1].is(1)) return value;
  if (rank == 1) return site.build.along("Unsqueeze", *value, {1});
  std::vector<int64_t> order;
  order.reserve(rank);
  for (size_t axis = 0; axis < rank; ++axis) order.push_back(static_cast<int64_t>(axis));
  std::swap(order[rank - 2], order[rank - 1]);
  return site.build.node("Transpose", {value}, {GraphBuilder::attribute("perm", order)});
}

/// SHAPE, of Q or (ON_KEY) K in four dimensions, once a factor of the scores whose shape is FACTOR is multiplied in.
void widen(Shape& shape, const Shape& factor, bool on_key, const Facts& facts) {
  const auto join = [&](size_t axis, const Dim& size) { shape[axis] = joint_size(shape[axis], size, facts); };
  const size_t rank = factor.size();
  if (on_key && rank > 0) join(2, factor[rank - 1]);
  if (!on_key && rank > 1) join(2, factor[rank - 2]);
  for (size_t back = 2; back < std::min(rank, shape.size()); ++back) join(shape.size() - 1 - back, factor[rank - 1 - back]);
}

/// OPERAND, Q or (ON_KEY) K in four dimensions, times what scales it.
Matched<void> apply_tensor_scales(const WritingPlan& plan, bool on_key, Placed& operand, Site& site) {
  for (const TensorScale& scale : site.sdpa.tensor_scales) {
    if (scale.on_key != on_key) continue;
    const MaybeShape shape = site.facts.shape(*scale.value);
    if (!shape) return missed("emit.tensor-scale", scale.value->producer, "unknown rank");
    ATTN_OPT_MATCH(const Placed placed, to_scores_frame({site.cast(*scale.value), *shape}, scale.frame, site));
    Value* factor = placed.value;
    if (on_key) {
      ATTN_OPT_MATCH(factor, beside_key(placed, plan, site));
    } else if (!placed.shape.empty() && !placed.shape.back().is(1)) {
      return missed("emit.tensor-scale", scale.value->producer, to_string(placed.shape) + " beside Q");
    }
    operand.value = site.build.node(scale.divides ? "Div" : "Mul", {operand.value, factor});
    widen(operand.shape, placed.shape, on_key, site.facts);
  }
  return {};
}

/// Q or (ON_KEY) K, scaled by tensors in four dimensions.
Matched<Placed> write_scaled(const OperandView& view, bool on_key, const WritingPlan& plan, Site& site) {
  const auto& scales = site.sdpa.tensor_scales;
  const Site::Axis rows = on_key ? Site::kKeys : Site::kQueries;
  if (std::ranges::none_of(scales, [&](const TensorScale& scale) { return scale.on_key == on_key; }))
    return write_operand(view, rows, plan.form, site);
  ATTN_OPT_MATCH(Placed operand, write_operand(view, rows, IoForm::k4d, site));
  site.sizes.add(*operand.value, operand.shape);
  const Shape own = operand.shape;
  ATTN_OPT_DONE(apply_tensor_scales(plan, on_key, operand, site));
  if (plan.form == IoForm::k4d) return operand;
  if (operand.shape != own)
    return missed("emit.form", operand.value->producer, "no 3-D form: factors broadcast to " + to_string(operand.shape));
  const AxisMap axes = of_joint_batch(view.axes, site);
  const Grouping wanted = grouping_for(axes, plan.form);
  ATTN_OPT_MATCH(operand.value, LayoutChange(grouping_for(axes, IoForm::k4d), wanted).write(*operand.value, axes, site));
  operand.shape = shape_of(axes, wanted);
  return operand;
}

/// The attribute is a float and, for some runtimes, must be positive; what it cannot say, and a sign, goes to Q.
void apply_scale(double total, Operands& operands, Site& site) {
  const auto attribute = static_cast<float>(std::abs(total));
  const bool fits = site.sdpa.type != onnx::TensorProto::DOUBLE && attribute > 0 && std::isfinite(attribute);
  operands.scale = fits ? attribute : 1;
  if (fits && total < 0) operands.q.value = site.build.node("Neg", {operands.q.value});
  if (!fits && total != 1) operands.q.value = site.build.scaled(operands.q.value, total, site.sdpa.type);
}

}  // namespace

Matched<Operands> write_operands(const WritingPlan& plan, double scale, Site& site) {
  Operands operands;
  ATTN_OPT_DONE(join_batch(plan, site));
  ATTN_OPT_MATCH(operands.q, write_scaled(*plan.q, false, plan, site));
  ATTN_OPT_MATCH(operands.k, write_scaled(*plan.k, true, plan, site));
  ATTN_OPT_MATCH(operands.v, write_operand(*plan.v, Site::kKeys, plan.form, site));
  for (const Placed* operand : {&operands.q, &operands.k, &operands.v}) site.sizes.add(*operand->value, operand->shape);
  apply_scale(scale, operands, site);
  return operands;
}

}  // namespace attn_opt
