// Values that the model makes alike, as it makes a mask twice: they are the same in each run, and are not drawn apart.
#pragma once

#include <span>

#include "src/verify/site_cut.h"

namespace attn_opt {

/// True if one of NODES makes VALUE as its own producer does.
bool is_made_alike(Value& value, std::span<Node* const> nodes, Facts& facts);

/// True if few nodes make BELOW, booleans, of ABOVE's elements alone, each in its place or moved, as they make a mask of
/// another.
bool are_booleans_of(Value& below, const Value& above, Facts& facts);

/// Notes which inputs of SITE are made alike: one of them, which the attention of SDPA is given if any is, is drawn for all.
/// Q, K and V are drawn apart, which shows more.
void note_twins(CutSite& site, const Sdpa& sdpa, Facts& facts);

}  // namespace attn_opt
