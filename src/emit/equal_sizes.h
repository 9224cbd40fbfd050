// Sizes that are taken for equal, and may be others in a run.
#pragma once

#include <span>

#include "attn_opt/facts.h"

namespace attn_opt {

/// True if SIZE was taken for the same as another where VALUE, of that size, is made, which is not proven where no axis of READ
/// is empty. Of two sizes that broadcast one may be 1 in a run, and then the value has the other.
bool is_one_of_equals(const Dim& size, const Value& value, std::span<Value* const> read, Facts& facts);

/// Where sizes that broadcast were taken for equal as VALUE was made, gives that axis of SHAPE, VALUE's own, what they come to
/// in each run.
void join_equals(Shape& shape, const Value& value, Facts& facts);

}  // namespace attn_opt
