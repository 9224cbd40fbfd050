// Where the boxes and arrows of a diagram go. Graphviz decides; without it nothing is placed.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/report/drawing/diagram.h"

namespace attn_opt {

using Point = std::pair<double, double>;  ///< from the left, from the top

struct PlacedDiagram {
  struct PlacedArrow {
    std::vector<Point> curve;    ///< a start, then three points for each Bezier curve; the head is at the last
    Point head;                  ///< the head's tip
    std::optional<Point> label;  ///< its centre
  };
  double width = 0, height = 0;
  std::vector<Point> centres;       ///< of each box
  std::vector<PlacedArrow> arrows;  ///< in the diagram's order
};

/// False in a build without Graphviz.
bool can_place();
/// None without Graphviz, or if it fails. One at a time: calls from several threads wait for each other.
std::optional<PlacedDiagram> placed(const Diagram& diagram);

}  // namespace attn_opt
