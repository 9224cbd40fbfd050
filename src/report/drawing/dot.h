// Diagrams in the languages of Graphviz and Mermaid.
#pragma once

#include <string>

#include "src/report/drawing/diagram.h"

namespace attn_opt {

/// TEXT in quotes, as DOT reads it; a line break is \n there, and other control characters are left out.
std::string dot_quoted(const std::string& text);
/// DIAGRAM's statements, between braces: boxes PREFIX0, PREFIX1, ...
std::string dot_statements(const Diagram& diagram, const std::string& prefix);
/// A graph of DIAGRAM alone, whose boxes n0, n1, ... have their sizes.
std::string dot_to_lay_out(const Diagram& diagram);
/// "flowchart TB", as GitHub draws it.
std::string mermaid(const Diagram& diagram);

}  // namespace attn_opt
