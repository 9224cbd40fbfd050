// Values that are made alike, node by node.
#pragma once

#include <functional>

#include "attn_opt/facts.h"
#include "attn_opt/graph.h"

namespace attn_opt {

/// So many nodes that compute the same are compared.
inline constexpr int kMaxAlike = 12;

/// True of two values that are the same for another reason than are_alike(), of at most so many more nodes.
using AlsoAlike = std::function<bool(Value& one, Value& other, int& left)>;

/// True if ONE and OTHER are the same number for each element: the same value, or the same operators of the same values, of at
/// most LEFT nodes, which it counts down.
bool are_alike(Value& one, Value& other, int& left, Facts& facts, const AlsoAlike& also = {});
/// The same attributes, an axis counted from either end, or left out where it is that by default.
bool have_same_attributes(const Node& one, const Node& other, Facts& facts);

}  // namespace attn_opt
