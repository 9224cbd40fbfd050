// The type that attention is to be computed in.
#pragma once

#include "attn_opt/pattern.h"

namespace attn_opt {

/// The type to cast Q, K and V to: OF_QUERY, theirs, or that of a bias among TERMS which the model adds to scores it has cast
/// up. float16 rounds a score plus a bias of 1000 to multiples of 1, and one plus -1e4 to multiples of 8. Masks of 0 and -inf
/// alone, and those that positions alone make and that swallow a score, are exact in any type.
DataType computed_type(DataType of_query, const std::vector<ScoreTerm>& terms, Facts& facts);

}  // namespace attn_opt
