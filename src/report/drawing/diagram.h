// A graph of the JSON report as boxes and arrows, for every format that draws.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace attn_opt {

/// Sizes are in pixels of the text that the style sheet gives the drawing.
struct Diagram {
  struct Box {
    enum class Kind { kOperator, kInput, kOutput };  ///< the last two: tensors that nothing drawn makes, or reads
    Kind kind = Kind::kOperator;
    std::string role;                ///< of the node ("stopped") or the tensor ("Q"); empty: none
    std::string heading;             ///< the operator, or what the tensor is
    std::vector<std::string> lines;  ///< below it, shortened
    std::string title;               ///< everything, in full
    double width = 0, height = 0;
  };
  struct Arrow {
    int from = 0, to = 0;  ///< boxes
    std::string label;     ///< the tensor's shape; once for a tensor
    std::string title;     ///< its name, type and shape in full
  };
  std::vector<Box> boxes;  ///< those of nodes first, in the order of the report
  std::vector<Arrow> arrows;
};

/// GRAPH: "before" or "after" of a group, not null. Numbers that nodes read stand in the nodes.
Diagram diagram_of(const nlohmann::json& graph);

inline constexpr double kHeadingHeight = 17, kLineHeight = 13, kBoxMargin = 7;

}  // namespace attn_opt
