// Drawings of a report's groups.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace attn_opt {

/// What is drawn of one side of a group.
struct GroupDrawing {
  size_t group = 0;
  std::string side;  ///< "before", "after"
  std::string name;  ///< "NAME and 11 equal sites"
  bool has_both_sides = false;
  const nlohmann::json* graph = nullptr;

  /// The name, with the side where there are two.
  std::string caption() const { return has_both_sides ? name + ", " + side : name; }
};

/// Calls DRAW for each side of each group of REPORT that has a graph with a node.
void for_each_drawing(const nlohmann::json& report, const std::function<void(const GroupDrawing& drawing)>& draw);

}  // namespace attn_opt
