// Nodes that are all known before it is asked which are among them: a sorted list, which costs less to make than hashes do.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "attn_opt/graph.h"

namespace attn_opt {

class SortedNodes {
 public:
  explicit SortedNodes(std::span<Node* const> nodes) : nodes_(nodes.begin(), nodes.end()) { std::ranges::sort(nodes_); }

  bool contains(const Node* node) const { return std::ranges::binary_search(nodes_, node); }

 private:
  std::vector<const Node*> nodes_;
};

}  // namespace attn_opt
