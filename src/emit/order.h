// The end of an emission: all that it replaces is taken over, and it stands below all that it reads and above all that reads
// what it takes over.
#pragma once

#include "attn_opt/internal/emit.h"
#include "src/emit/site.h"

namespace attn_opt {

/// Takes over what the match makes beside the attention, adopts the unplaced nodes that are read, and notes what goes and what
/// was assumed. Miss "emit.order" if the edit would make a cycle or reads what stands below it. ELSEWHERE: where it might stand
/// instead, if it stands below a reader or above what it reads.
Matched<void> complete(Emission& emission, Site& site, Node** elsewhere = nullptr);

}  // namespace attn_opt
