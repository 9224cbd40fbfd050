// Values seen through what moves, casts or dequantises their elements.
#pragma once

#include "attn_opt/facts.h"

namespace attn_opt {

/// What VALUE's elements are of before a few nodes moved, cast or dequantised them, copies left out: VALUE where none did.
Value& moved_from(Value& value, Facts& facts);

}  // namespace attn_opt
