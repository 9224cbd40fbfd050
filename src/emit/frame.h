// Values that were met where the scores had another shape than (B, H, L, S): merged or split leading axes.
#pragma once

#include "src/emit/site.h"

namespace attn_opt {

/// True if what broadcasts against FRAME broadcasts against the scores (B, H, L, S) as it is.
bool is_scores_frame(const Shape& frame, Site& site);

/// VALUE, which broadcasts against MET, as a value that broadcasts against (B, H, L, S). Leading axes are
/// expanded only where they must. Misses "emit.frame", "emit.shape".
Matched<Placed> to_scores_frame(Placed value, const Shape& met, Site& site);

}  // namespace attn_opt
