// Operators that take one element, or a few, from each group along axes.
#include <algorithm>

#include "src/match/node_forms.h"

namespace attn_opt {
namespace {

void set_reduced(RuleContext& context, const std::vector<size_t>& axes, bool keep) {
  const Shape& shape = context.shape(0).known();
  Shape result;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const bool reduced = std::ranges::binary_search(axes, axis);
    if (!reduced) result.push_back(shape[axis]);
    if (reduced && keep) result.push_back(1);
  }
  context.set_shape(0, std::move(result));
}

void reduce(RuleContext& context) {
  const MaybeShape shape = context.shape(0);
  if (!shape) return;
  const bool keep = context.node().int_attribute("keepdims", 1) != 0;
  const bool no_op = context.node().int_attribute("noop_with_empty_axes", 0) != 0;
  const std::vector<size_t> unnamed = no_op ? std::vector<size_t>{} : all_axes(shape->size());
  std::optional<std::vector<size_t>> axes = axes_of(context, shape->size(), unnamed);
  if (axes && axes->empty()) axes = unnamed;
  if (axes) return set_reduced(context, *axes, keep);
  const MaybeShape count = context.shape(1);
  const bool counted = count && count->size() == 1 && (*count)[0].is_constant() && !(*count)[0].is(0);
  if (keep) {
    context.set_shape(0, context.fresh_shape(0, shape->size()));
  } else if (counted && (*count)[0].value() <= static_cast<int64_t>(shape->size())) {
    context.set_shape(0, context.fresh_shape(0, shape->size() - static_cast<size_t>((*count)[0].value())));
  }
}

void arg_reduce(RuleContext& context) {
  const MaybeShape shape = context.shape(0);
  if (!shape) return;
  const std::optional<size_t> axis = axis_in(context.node().int_attribute("axis", 0), shape->size());
  if (axis) set_reduced(context, {*axis}, context.node().int_attribute("keepdims", 1) != 0);
}

using enum ResultType;
constexpr ShapeRule kReductionRules[] = {
    {"ReduceL1", reduce},  {"ReduceL2", reduce},        {"ReduceLogSum", reduce},       {"ReduceLogSumExp", reduce},
    {"ReduceMax", reduce}, {"ReduceMean", reduce},      {"ReduceMin", reduce},          {"ReduceProd", reduce},
    {"ReduceSum", reduce}, {"ReduceSumSquare", reduce}, {"ArgMax", arg_reduce, kInt64}, {"ArgMin", arg_reduce, kInt64},
};

}  // namespace

std::span<const ShapeRule> reduction_rules() { return kReductionRules; }

}  // namespace attn_opt
