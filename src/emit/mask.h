// attn_mask: the terms of the scores as one tensor of the shape that the operator takes.
#pragma once

#include "src/emit/site.h"

namespace attn_opt {

/// The attention's terms but for those that change nothing.
std::vector<const ScoreTerm*> terms_that_count(Site& site);

/// TERMS, of which there is one at least, as a mask that broadcasts against the scores. Misses "emit.frame", "emit.shape",
/// "emit.mask-shape".
Matched<Placed> write_mask(const std::vector<const ScoreTerm*>& terms, Site& site);

}  // namespace attn_opt
