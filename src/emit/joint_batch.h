// A batch of several axes, which the operator has as one: sizes that broadcast are stretched axis by axis, before they merge.
#pragma once

#include "src/emit/plan.h"

namespace attn_opt {

/// Finds site.batch, and site.scores of it: what the axes of Q, K, V and of the masks come to in each run. Nothing if all have
/// the same sizes, the batch is one axis, or an operand has its axes merged or fewer of them. Miss "emit.batch": then a number
/// stands beside a size that only a run tells, which may be 1.
Matched<void> join_batch(const WritingPlan& plan, Site& site);

/// VIEW, expanded to site.batch. Miss "emit.shape": no value at hand has such a size.
Matched<OperandView> of_joint_batch(const OperandView& view, Site& site);

/// AXES, of Y or what is made of it, with the sizes of site.batch.
AxisMap of_joint_batch(const AxisMap& axes, const Site& site);

/// FRAME, a shape of the scores, with the sizes of site.batch.
Shape of_joint_batch(Shape frame, const Site& site);

}  // namespace attn_opt
