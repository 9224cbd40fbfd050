// An axis that a Reshape, Squeeze or Unsqueeze leaves as it is, of which a part is regrouped as all of it is.
//
//   Concat(Reshape(a), Reshape(b))  =>  Reshape(Concat(a, b))      Slice(Reshape(a))  =>  Reshape(Slice(a))
#pragma once

#include <optional>

#include "attn_opt/facts.h"
#include "patterns/inner_values.h"

namespace attn_opt {

/// What regroupings beside an axis make a value of, and where that axis is there, counted from the last.
struct RegroupedBeside {
  Value* value = nullptr;
  size_t axis = 0;
};

/// The nearest value that regroupings make VALUE of, which keep its AXIS, counted from the last; nullopt if there is none.
std::optional<RegroupedBeside> before_regrouping_beside(const Value& value, size_t axis, Facts& facts);

/// VALUE, whose axis FROM becomes AXIS, both counted from the last, in SHAPE but for that; null if sizes are not found
/// above it.
Value* regrouped_beside(Value& value, size_t from, const Shape& shape, size_t axis, InnerValues& inner, Facts& facts);

}  // namespace attn_opt
