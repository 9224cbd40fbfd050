// An axis that a Reshape, Squeeze or Unsqueeze leaves as it is, of which a part is regrouped as all of it is.
//
//   Concat(Reshape(a), Reshape(b))  =>  Reshape(Concat(a, b))      Slice(Reshape(a))  =>  Reshape(Slice(a))
#pragma once

#include <optional>

#include "attn_opt/facts.h"
#include "patterns/inner_values.h"

namespace attn_opt {

/// The axis of BEFORE that is the AXIS of AFTER, both counted from the last, of a regrouping; nullopt if others are regrouped
/// with it.
std::optional<size_t> axis_kept(const Shape& before, const Shape& after, size_t axis);

/// VALUE, whose axis FROM becomes AXIS, both counted from the last, in SHAPE but for that; null if more than one of its sizes
/// are no numbers.
Value* regrouped_beside(Value& value, size_t from, const Shape& shape, size_t axis, InnerValues& inner, Facts& facts);

}  // namespace attn_opt
