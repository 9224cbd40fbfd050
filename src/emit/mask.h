// attn_mask: the terms of the scores as one tensor of the shape that the operator takes.
#pragma once

#include "src/emit/site.h"

namespace attn_opt {

/// The mask; null if the attention has none. Misses "emit.frame", "emit.shape", "emit.mask-shape".
Matched<Value*> write_mask(Site& site);

}  // namespace attn_opt
