// Which nodes a run comes to: those that an output of their graph is computed from.
#pragma once

#include <set>

#include "attn_opt/graph.h"

namespace attn_opt {

class NeededNodes {
 public:
  /// True if an output of NODE's graph is computed from what NODE makes: no runtime leaves it out.
  bool contains(const Node& node);

 private:
  std::set<const Node*> known_;
};

}  // namespace attn_opt
