// Questions about products that a guard makes numbers of, asked of what the guard makes: nothing else reads the product then.
//
//   y = Where(IsNaN(x), 0, x)      IsInf(x)  =>  IsInf(y)      Less(x, 0)  =>  Less(y, 0)      Greater(x, 0)  =>  Greater(y, 0)
#pragma once

#include "attn_opt/graph.h"
#include "src/rewrite/redirections.h"

namespace attn_opt {

/// Has such questions of VIEW about products read what a guard above them makes, of which the answer is the same: where a
/// product is NaN they are false, and of the guard's number too. Linear in the size of the graph. REDIRECTIONS: what reads
/// otherwise. Nothing may have been inlined in the model of the view: calls know one name for another, whoever reads it.
void read_guarded(ModelGraph& view, const TensorStore& tensors, Redirections& redirections);

}  // namespace attn_opt
