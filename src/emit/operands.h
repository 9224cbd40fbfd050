// Q, K, V as the node takes them: layout, type, broadcast axes and the scale.
#pragma once

#include "src/emit/plan.h"

namespace attn_opt {

struct Operands {
  Placed q, k, v;   ///< of the shapes of the plan's form
  float scale = 1;  ///< what is left for the attribute
};

/// SCALE: of the scores, beside the tensors. Misses "emit.shape", "emit.frame", "emit.mask-shape" (of a tensor that
/// scales, too), "emit.tensor-scale".
Matched<Operands> write_operands(const WritingPlan& plan, double scale, Site& site);

}  // namespace attn_opt
