#include "src/emit/joint_batch.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "src/emit/joint_sizes.h"
#include "src/match/sizes/broadcast_size.h"

namespace attn_opt {
namespace {

std::vector<Dim> batch_sizes(const AxisMap& axes) {
  std::vector<Dim> sizes;
  for (const int factor : axes.all_of_role(Role::kBatch)) sizes.push_back(axes.factors()[static_cast<size_t>(factor)].size);
  return sizes;
}

/// The axis that holds FACTOR alone; none if it is merged with others or repeated.
std::optional<size_t> axis_of(const AxisMap& axes, int factor) {
  for (size_t axis = 0; axis < axes.rank(); ++axis)
    if (std::ranges::equal(axes.axis(axis), std::array{factor})) return axis;
  return std::nullopt;
}

/// For each axis of FRAME, a shape of the scores, the entry of site.batch that it holds; all none where scores have another
/// rank than Q as the product reads it.
std::vector<std::optional<size_t>> batch_axes_of(const Shape& frame, const Site& site) {
  std::vector<std::optional<size_t>> held(frame.size());
  const AxisMap& query = site.sdpa.q.views.front().axes;
  if (query.rank() != frame.size()) return held;
  const std::vector<int> all = query.all_of_role(Role::kBatch);
  for (size_t i = 0; i < std::min(all.size(), site.batch.size()); ++i)
    if (const auto axis = axis_of(query, all[i])) held[*axis] = i;
  return held;
}

/// Widens site.batch by what VALUE, which broadcasts to FRAME, has there. False if its axes cannot be told apart.
bool widen_by(const Value& value, const Shape& frame, Site& site) {
  const MaybeShape shape = site.facts.shape(value);
  if (!shape || shape->size() > frame.size()) return false;
  const auto held = batch_axes_of(frame, site);
  if (std::ranges::count_if(held, [](const auto& entry) { return entry.has_value(); }) != std::ssize(site.batch)) return false;
  for (size_t axis = 0; axis < frame.size(); ++axis) {
    if (!held[axis]) continue;
    const size_t absent = frame.size() - shape->size();
    const Dim own = axis < absent ? Dim(1) : (*shape)[axis - absent];
    BatchAxis& batch = site.batch[*held[axis]];
    if (frame[axis] != own && frame[axis] != batch.joint && std::ranges::find(batch.names, frame[axis]) == batch.names.end())
      return false;
    batch.names.push_back(batch.joint);
    batch.joint = joint_size(batch.joint, own, site.facts);
  }
  return true;
}

/// True if one of AXES is a number above 1 of some operand, and of another what only a run tells: 1, or that number.
bool have_numbers_beside_names(const std::vector<BatchAxis>& axes) {
  return std::ranges::any_of(axes, [](const BatchAxis& axis) {
    const auto is_name = [](const Dim& size) { return !size.is_constant(); };
    return axis.joint.is_constant() && std::ranges::any_of(axis.names, is_name);
  });
}

/// True if VIEW can be expanded along each axis that is not as site.batch has it.
bool is_expandable(const OperandView& view, const Site& site) {
  const std::vector<int> all = view.axes.all_of_role(Role::kBatch);
  for (size_t i = 0; i < all.size(); ++i)
    if (view.axes.factors()[static_cast<size_t>(all[i])].size != site.batch[i].joint && !axis_of(view.axes, all[i]))
      return false;
  return !view.past;
}

}  // namespace

Matched<void> join_batch(const WritingPlan& plan, Site& site) {
  const std::vector<Dim> query = batch_sizes(plan.q->axes);
  const std::array<const OperandView*, 3> operands{plan.q, plan.k, plan.v};
  const auto has_as_many = [&](const OperandView* view) { return batch_sizes(view->axes).size() == query.size(); };
  if (query.size() < 2 || !std::ranges::all_of(operands, has_as_many)) return {};
  const std::vector<Dim> key = batch_sizes(plan.k->axes), value = batch_sizes(plan.v->axes);
  bool is_told = true;
  for (size_t i = 0; i < query.size(); ++i) {
    const Dim scores = joint_size(query[i], key[i], site.facts);
    site.batch.push_back({joint_size(scores, value[i], site.facts), {query[i], key[i], value[i], scores}});
    if (!query[i].is_constant() && !key[i].is_constant()) site.batch[i].names.push_back(broadcast_size(query[i], key[i]));
  }
  for (const ScoreTerm& term : site.sdpa.terms) is_told = is_told && widen_by(*term.value, term.frame, site);
  for (const TensorScale& scale : site.sdpa.tensor_scales) is_told = is_told && widen_by(*scale.value, scale.frame, site);
  const auto is_as_told = [&](const OperandView* view) {
    return std::ranges::equal(batch_sizes(view->axes), site.batch, {}, {}, &BatchAxis::joint);
  };
  const auto can_be_expanded = [&](const OperandView* view) { return is_expandable(*view, site); };
  if (std::ranges::all_of(operands, is_as_told)) {
    site.batch.clear();
    return {};
  }
  if (!is_told || !std::ranges::all_of(operands, can_be_expanded)) {
    if (have_numbers_beside_names(site.batch))
      return missed("emit.batch", plan.q->value->producer,
                    plan.q->axes.str() + ", " + plan.k->axes.str() + " and " + plan.v->axes.str() + " may broadcast");
    site.batch.clear();
    return {};
  }
  site.scores[Site::kBatch] = 1;
  for (const BatchAxis& axis : site.batch) site.scores[Site::kBatch] = site.scores[Site::kBatch] * axis.joint;
  return {};
}

Matched<OperandView> of_joint_batch(const OperandView& view, Site& site) {
  if (site.batch.empty()) return view;
  Shape target(view.axes.rank(), 1);
  const std::vector<int> all = view.axes.all_of_role(Role::kBatch);
  for (size_t i = 0; i < all.size(); ++i)
    if (view.axes.factors()[static_cast<size_t>(all[i])].size != site.batch[i].joint)
      target[*axis_of(view.axes, all[i])] = site.batch[i].joint;
  if (target == Shape(target.size(), 1)) return view;
  ATTN_OPT_MATCH(Value * sizes, site.sizes_of(target, *view.value));
  OperandView expanded = view;
  expanded.value = site.build.node("Expand", {view.value, sizes});
  expanded.axes = of_joint_batch(view.axes, site);
  return expanded;
}

AxisMap of_joint_batch(const AxisMap& axes, const Site& site) {
  if (axes.all_of_role(Role::kBatch).size() != site.batch.size()) return axes;
  std::vector<Dim> sizes;
  for (const BatchAxis& axis : site.batch) sizes.push_back(axis.joint);
  return axes.with_sizes(Role::kBatch, sizes);
}

Shape of_joint_batch(Shape frame, const Site& site) {
  const auto held = batch_axes_of(frame, site);
  for (size_t axis = 0; axis < frame.size(); ++axis)
    if (held[axis]) frame[axis] = site.batch[*held[axis]].joint;
  return frame;
}

}  // namespace attn_opt
