// What the description of a site reads.
#pragma once

#include "attn_opt/pattern.h"

namespace attn_opt {

/// True if MATCH, or a node that is in no list yet and serves it, reads a value that no node makes any more: an earlier site
/// gave it the name of one of the model's; or if what makes its output reads what such a site wrote.
bool reads_what_is_gone(const Match& match);

}  // namespace attn_opt
