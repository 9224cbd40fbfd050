#include "src/report/drawing/dot.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/report/drawing/layout.h"

namespace attn_opt {
namespace {

using Box = Diagram::Box;

std::string words_of(const Box& box) {
  std::vector<std::string> lines = {box.heading};
  lines.insert(lines.end(), box.lines.begin(), box.lines.end());
  return joined(lines, "\n");
}

std::string look_of(const Box& box) {
  if (box.kind != Box::Kind::kOperator) return "shape=box, style=rounded, color=gray40";
  if (box.role == "stopped") return "shape=box, style=filled, color=red3, fillcolor=mistyrose";
  if (box.role == "written") return "shape=box, style=filled, color=green4, fillcolor=honeydew";
  if (box.role == "walked" || box.role == "anchor") return "shape=box, color=green4";
  return "shape=box";
}

std::string class_of(const Box& box) {
  if (box.kind != Box::Kind::kOperator) return "tensor";
  return box.role.empty() ? "plain" : box.role;
}

/// What Mermaid takes for markup becomes its entities.
std::string mermaid_text(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n')
      result += "<br/>";
    else if (byte < ' ' || std::string_view("\"#&<>`*_|\\[](){}").find(c) != std::string_view::npos)
      result += fmt::format("#{};", byte);
    else
      result += c;
  }
  return result;
}

}  // namespace

std::string dot_quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n')
      result += "\\n";
    else if (static_cast<unsigned char>(c) >= ' ')
      result += c;
  }
  return result + "\"";
}

std::string dot_statements(const Diagram& diagram, const std::string& prefix) {
  std::string text = "    node [fontname=\"sans-serif\", fontsize=11]; edge [fontname=\"monospace\", fontsize=9];\n";
  for (size_t i = 0; i < diagram.boxes.size(); ++i) {
    const Box& box = diagram.boxes[i];
    text += fmt::format("    {}{} [label={}, tooltip={}, {}];\n", prefix, i, dot_quoted(words_of(box)), dot_quoted(box.title),
                        look_of(box));
  }
  for (const Diagram::Arrow& arrow : diagram.arrows)
    text += fmt::format("    {0}{1} -> {0}{2} [label={3}, tooltip={4}];\n", prefix, arrow.from, arrow.to,
                        dot_quoted(arrow.label), dot_quoted(arrow.title));
  return text;
}

std::string dot_to_lay_out(const Diagram& diagram) {
  constexpr double kPerInch = 72;
  std::string text =
      "digraph {\n  ranksep=0.28; nodesep=0.22; node [shape=box, fixedsize=true, label=\"\"]; edge [fontname=\"Courier\", "
      "fontsize=10];\n";
  for (size_t i = 0; i < diagram.boxes.size(); ++i) {
    const Box& box = diagram.boxes[i];
    text += fmt::format("  n{} [width={:.3f}, height={:.3f}];\n", i, box.width / kPerInch, box.height / kPerInch);
  }
  for (const Diagram::Arrow& arrow : diagram.arrows)
    text += fmt::format("  n{} -> n{} [label={}];\n", arrow.from, arrow.to,
                        dot_quoted(arrow.label.empty() ? "" : " " + arrow.label));
  return text + "}\n";
}

std::string mermaid(const Diagram& diagram) {
  std::string text = "flowchart TB\n";
  for (size_t i = 0; i < diagram.boxes.size(); ++i) {
    const Box& box = diagram.boxes[i];
    const bool is_operator = box.kind == Box::Kind::kOperator;
    text += fmt::format("  n{}{}\"{}\"{}:::{}\n", i, is_operator ? "[" : "([", mermaid_text(words_of(box)),
                        is_operator ? "]" : "])", class_of(box));
  }
  for (const Diagram::Arrow& arrow : diagram.arrows)
    text += arrow.label.empty() ? fmt::format("  n{} --> n{}\n", arrow.from, arrow.to)
                                : fmt::format("  n{} -->|\"{}\"| n{}\n", arrow.from, mermaid_text(arrow.label), arrow.to);
  return text +
         "  classDef stopped stroke:#c62828,stroke-width:3px\n  classDef walked stroke:#2e7d32\n  classDef anchor "
         "stroke:#2e7d32\n"
         "  classDef written stroke:#2e7d32,stroke-width:2px\n  classDef tensor stroke-dasharray:3 3\n";
}

}  // namespace attn_opt
