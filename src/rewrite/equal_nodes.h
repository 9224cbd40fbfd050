// Nodes around exponentials that compute the same, made one: who reads the second reads the first, so that what all readers of
// a value do is seen in one place.
//
//   e = Exp(x)  f = Exp(x)  p = f / ReduceSum(e)  =>  e = Exp(x)  p = e / ReduceSum(e)
#pragma once

#include "attn_opt/facts.h"
#include "attn_opt/graph.h"
#include "src/rewrite/function_inliner.h"
#include "src/rewrite/redirections.h"

namespace attn_opt {

/// Makes those of VIEW one that make numbers or booleans of the same values by the same operator, have an exponential near
/// them, and a node near them that hangs on both: equal attentions stay two unless their results meet there. Near linear in
/// the size of the graph. Integers stay: most are sizes, which say nothing of attention. REDIRECTIONS: what reads otherwise.
/// CALLS, which may be null, were inlined in the model of the view: they learn of it.
void merge_equal_nodes(ModelGraph& view, const TensorStore& tensors, InlinedCalls* calls, Redirections& redirections);

}  // namespace attn_opt
