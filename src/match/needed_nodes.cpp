#include "src/match/needed_nodes.h"

#include <map>
#include <vector>

namespace attn_opt {

bool NeededNodes::contains(const Node& node) {
  std::vector<const Node*> pending{&node};
  std::map<const Node*, const Node*> reached_from{{&node, nullptr}};
  // All on the way to what is needed are: the next one asked for mostly meets these at once.
  const auto enter_way_to = [&](const Node* last) {
    for (const Node* next = last; next; next = reached_from.at(next)) known_.insert(next);
    return true;
  };
  while (!pending.empty()) {
    const Node* next = pending.back();
    pending.pop_back();
    if (known_.contains(next)) return enter_way_to(next);
    for (const Value* output : next->outputs) {
      if (!output) continue;
      if (output->is_output) return enter_way_to(next);
      for (const Use& use : output->uses)
        if (use.node && !use.node->removed && use.node->placement == Placement::kOfFile &&
            reached_from.emplace(use.node, next).second)
          pending.push_back(use.node);
    }
  }
  return false;
}

}  // namespace attn_opt
