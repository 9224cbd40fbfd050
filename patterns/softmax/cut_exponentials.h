// A part of what is made of each element for itself, as what is made of a part.
//
//   Slice(Exp(x - m))  =>  Exp(Slice(x) - m)      where m is a number for each row, along which it is cut
#pragma once

#include "attn_opt/pattern.h"

namespace attn_opt {

/// CUT with the Slice or Split along AXIS that leaves it inside of what makes its source of one value that has that axis, made
/// above READER; null if it is no such part.
Value* cut_within(Value& cut, size_t axis, Node& reader, MatchContext& context);

}  // namespace attn_opt
