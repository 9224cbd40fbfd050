#include "src/match/needed_nodes.h"

#include <vector>

namespace attn_opt {

bool NeededNodes::contains(const Node& node) {
  std::vector<const Node*> pending{&node};
  std::set<const Node*> seen{&node};
  while (!pending.empty()) {
    const Node* next = pending.back();
    pending.pop_back();
    if (known_.contains(next)) return known_.insert(&node), true;
    for (const Value* output : next->outputs) {
      if (!output) continue;
      if (output->is_output) return known_.insert(&node), true;
      for (const Use& use : output->uses)
        if (use.node && !use.node->removed && use.node->placement == Placement::kOfFile && seen.insert(use.node).second)
          pending.push_back(use.node);
    }
  }
  return false;
}

}  // namespace attn_opt
