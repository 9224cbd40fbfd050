// Floor division, which ONNX does not have of integers: its Div rounds towards 0, and exporters take 1 where that is not the
// floor.
//
//   a // b  =  Div(a, b) - Cast(And(Not(Equal(Sign(a), Sign(b))), Cast(Mod(a, b))))
#pragma once

#include "attn_opt/dim.h"
#include "attn_opt/graph.h"

namespace attn_opt {

class FactStore;

/// True if the And node CONDITION is that of a quotient of sizes, which is never true: where the sign of a dividend that is not
/// negative is another than that of its divisor, the dividend is 0, and so is the remainder. Of an Or, if it is the negation of
/// such an And, and always true.
bool is_never_corrected(const Node& condition, FactStore& store);

}  // namespace attn_opt
