// Between which numbers integers lie that a graph computes of sizes and truths.
#pragma once

#include <optional>

#include "attn_opt/facts.h"

namespace attn_opt {

struct IntegerRange {
  double least = 0, greatest = 0;
};

/// The numbers of a type as large as TYPE that a double holds exactly: beyond these, integers begin anew from the other end.
IntegerRange range_of_integers(DataType type);

/// The range of VALUE's elements, integers or booleans, followed through positions, layout and arithmetic for a bounded number
/// of nodes; nullopt where nothing tells it, or a result may leave its type. An axis is taken to have at most 2^31 elements: of
/// more keys no memory holds the scores.
std::optional<IntegerRange> integer_range(Value& value, Facts& facts);

}  // namespace attn_opt
