// The least finite number that a mask can hold, as far as the graph above it shows: some runtimes take the
// type's lowest number for -inf.
#pragma once

#include "attn_opt/facts.h"

namespace attn_opt {

/// The neighbour of lowest_finite(TYPE) towards zero.
double next_above_lowest(DataType type);

/// At most 0, and no finite element of VALUE in floating TYPE, times FACTOR, lies below it.
double least_in(Value& value, double factor, DataType type, Facts& facts);
double least_of_sum(double one, double other, DataType type);

}  // namespace attn_opt
