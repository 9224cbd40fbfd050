// The shape of attn_mask. Portable: rank 2 to 4, the last two axes exactly (L, S).
#pragma once

#include "src/emit/site.h"

namespace attn_opt {

/// MASK, which broadcasts against the scores, with the axes expanded that are 1 or not proven to be L and S.
/// Misses "emit.mask-shape", "emit.shape".
Matched<Value*> fit_to_scores(Placed mask, Site& site);

}  // namespace attn_opt
