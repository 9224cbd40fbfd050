// Where an edit stands: below all that it reads, above all that reads what it takes over.
#pragma once

#include <vector>

#include "attn_opt/edit.h"
#include "attn_opt/miss.h"

namespace attn_opt {

/// Miss "emit.order" if EDIT, which leaves REMOVED dead, would make a cycle or reads what stands below it. EARLIER: where it
/// might stand instead, if it stands below a reader.
Matched<void> check_order(const Edit& edit, const std::vector<Node*>& removed, Node** earlier = nullptr);

}  // namespace attn_opt
