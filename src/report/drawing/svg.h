// Diagrams as SVG that style sheets colour: light, dark and printed.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "src/report/drawing/placement.h"

namespace attn_opt {

/// An <svg> element, at LEFT and TOP of one around it. LABEL is what a screen reader says.
std::string svg_element(const Diagram& diagram, const PlacedDiagram& place, const std::string& label, double left = 0,
                        double top = 0);

}  // namespace attn_opt
