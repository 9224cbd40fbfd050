// Operands that are repeated for a Mul which repeats them itself, read as they were before: what is multiplied and added up is
// told by the sizes of its own.
//
//   ReduceSum(Mul(Expand(q, Shape(k)), k))  =>  ReduceSum(Mul(q, k))
#pragma once

#include "src/rewrite/function_inliner.h"
#include "src/rewrite/redirections.h"

namespace attn_opt {

/// Has each Mul of VIEW that something adds up, and whose other operand is of the size of the result, read what its Expand or
/// Tile repeats. Linear in the size of the graph. REDIRECTIONS: what reads otherwise.
/// CALLS, which may be null, were inlined in the model of the view: they learn of it.
void spare_expands(ModelGraph& view, const TensorStore& tensors, InlinedCalls* calls, Redirections& redirections);

}  // namespace attn_opt
