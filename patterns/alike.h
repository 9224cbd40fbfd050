// Values and nodes that are the same in whatever words.
#pragma once

#include "src/match/alike.h"

namespace attn_opt {

/// True if ONE and OTHER are_alike(), or add up the same in whatever words.
bool computes_same(Value& one, Value& other, Facts& facts);

}  // namespace attn_opt
