// Values and nodes that are the same in whatever words.
#pragma once

#include "attn_opt/facts.h"
#include "attn_opt/graph.h"

namespace attn_opt {

/// True if ONE and OTHER are the same number for each element: the same value, or the same operators of the same values.
bool computes_same(Value& one, Value& other, Facts& facts);
/// The same attributes, an axis counted from either end, or left out where it is that by default.
bool have_same_attributes(const Node& one, const Node& other, Facts& facts);

}  // namespace attn_opt
