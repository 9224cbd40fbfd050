// The shape of MatMul, whatever the operator's inputs are called.
#pragma once

#include "src/match/shape_rules/shape_rule.h"

namespace attn_opt {

/// Sets the first output's shape to that of input LEFT times input RIGHT, as numpy.matmul has it.
void set_product_shape(RuleContext& context, size_t left, size_t right);

}  // namespace attn_opt
