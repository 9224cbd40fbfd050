// Nodes that hand on one of their operands as it is, told one by one.
#pragma once

#include "attn_opt/facts.h"

namespace attn_opt {

/// False where a shape is not known.
bool same_shape(const Value& one, const Value& other, Facts& facts);

/// The operand that NODE copies by what is known of the others; null if there is none.
Value* copied_by(const Node& node, Facts& facts);

}  // namespace attn_opt
