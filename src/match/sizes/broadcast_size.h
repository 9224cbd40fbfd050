// What sizes broadcast to where nothing else is known of them: a symbol that holds them. Each of them is it, or 1.
#pragma once

#include "attn_opt/dim.h"

namespace attn_opt {

/// The size that ONE and OTHER, none of them a number, broadcast to. The order and the nesting in which sizes broadcast make no
/// difference to it, nor does it to broadcast one of them again.
Dim broadcast_size(const Dim& one, const Dim& other);

}  // namespace attn_opt
