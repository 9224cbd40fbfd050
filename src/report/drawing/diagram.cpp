#include "src/report/drawing/diagram.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "src/io/number_text.h"
#include "src/report/drawing/layout.h"
#include "src/report/findings.h"

namespace attn_opt {
namespace {

using nlohmann::json;
using Box = Diagram::Box;

constexpr size_t kWidestLine = 22, kWidestHeading = 40, kWidestSize = 12, kMostLines = 4;
constexpr double kHeadingColumn = 8, kLineColumn = 6.3;  ///< width of a character

/// TEXT's last WIDTH characters, which tell names apart.
std::string tail(const std::string& text, size_t width) {
  if (text.size() <= width) return elided(text, width);
  const std::string end = text.substr(text.size() - std::min(text.size(), 2 * width));
  std::string kept = elided(end, 2 * width);
  size_t from = kept.size() - (width - 1);
  while (from < kept.size() && (static_cast<unsigned char>(kept[from]) & 0xc0) == 0x80) ++from;
  return "…" + kept.substr(from);
}

std::string shape_text(const json& tensor, size_t widest_size) {
  const json& shape = tensor.at("shape");
  if (shape.is_null()) return "";
  std::vector<std::string> sizes;
  for (const json& size : shape) sizes.push_back(elided(text_of(size), widest_size));
  return fmt::format("[{}]", joined(sizes, ", "));
}

std::string tensor_title(const json& tensor) {
  constexpr size_t kWhole = 400;
  return fmt::format("{}\n{} {}", text_of(tensor.at("name")), text_of(tensor.at("type")), shape_text(tensor, kWhole));
}

std::string number_of(const json& tensor) {
  const json& number = tensor.at("number");
  if (number.is_string()) return text_of(number);
  return number_text(number.get<double>());
}

bool is_number(const json& tensor) { return !tensor.at("number").is_null() && tensor.at("from").is_null(); }

/// Attributes and numbers of NODE: "0.125", "axis=-1".
std::vector<std::string> details(const json& node, const std::vector<std::string>& numbers) {
  std::vector<std::string> parts = numbers;
  for (const auto& [name, value] : node.at("attributes").items())
    if (name != "allowzero") parts.push_back(name + "=" + text_of(value));
  return parts;
}

/// PARTS in lines, as many to a line as it holds.
std::vector<std::string> packed(const std::vector<std::string>& parts) {
  std::vector<std::string> lines;
  for (const std::string& part : parts) {
    const std::string piece = elided(part, kWidestLine);
    if (!lines.empty() && lines.back().size() + 2 + piece.size() <= kWidestLine)
      lines.back() += ", " + piece;
    else if (lines.size() < kMostLines)
      lines.push_back(piece);
  }
  return lines;
}

void measure(Box& box) {
  size_t widest = 0;
  for (const std::string& line : box.lines) widest = std::max(widest, line.size());
  box.width = std::max(static_cast<double>(box.heading.size()) * kHeadingColumn, static_cast<double>(widest) * kLineColumn) +
              3 * kBoxMargin;
  box.height = kHeadingHeight + static_cast<double>(box.lines.size()) * kLineHeight + kBoxMargin;
}

Box operator_box(const json& node, const std::vector<std::string>& numbers) {
  Box box;
  const std::string op = text_of(node.at("op"));
  const size_t domain = op.rfind("::");
  box.heading = elided(domain == std::string::npos ? op : op.substr(domain + 2), kWidestHeading);
  box.role = text_of(node.at("role"));
  const std::string name = text_of(node.at("name"));
  const std::vector<std::string> parts = details(node, numbers);
  box.lines = packed(parts);
  box.lines.insert(box.lines.begin(), tail(name, kWidestLine));
  if (domain != std::string::npos) box.lines.insert(box.lines.begin(), elided(op.substr(0, domain), kWidestHeading));
  box.title = joined({name, joined(parts, ", ")}, "\n");
  return box;
}

Box tensor_box(const json& tensor, Box::Kind kind) {
  Box box;
  box.kind = kind;
  box.role = text_of(tensor.at("role"));
  const std::string name = text_of(tensor.at("name"));
  box.heading = box.role.empty() ? tail(name, kWidestLine) : box.role;
  if (!box.role.empty()) box.lines.push_back(tail(name, kWidestLine));
  if (const std::string shape = shape_text(tensor, kWidestSize); !shape.empty())
    box.lines.push_back(elided(shape, kWidestLine));
  box.title = tensor_title(tensor);
  return box;
}

class DiagramMaker {
 public:
  explicit DiagramMaker(const json& graph) : graph_(graph) {}

  Diagram make() {
    add_operators();
    for (const json& tensor : graph_.at("tensors"))
      if (!is_number(tensor)) add_tensor(tensor);
    for (Box& box : diagram_.boxes) measure(box);
    return std::move(diagram_);
  }

 private:
  void add_operators() {
    const json& nodes = graph_.at("nodes");
    std::vector<std::vector<std::string>> numbers(nodes.size());
    for (const json& tensor : graph_.at("tensors"))
      if (is_number(tensor))
        for (const json& reader : tensor.at("to")) numbers.at(reader.get<size_t>()).push_back(number_of(tensor));
    for (size_t i = 0; i < nodes.size(); ++i) diagram_.boxes.push_back(operator_box(nodes[i], numbers[i]));
  }

  int add_box(Box box) {
    diagram_.boxes.push_back(std::move(box));
    return static_cast<int>(diagram_.boxes.size()) - 1;
  }

  void add_tensor(const json& tensor) {
    const json &maker = tensor.at("from"), &readers = tensor.at("to");
    const int from = maker.is_null() ? add_box(tensor_box(tensor, Box::Kind::kInput)) : maker.get<int>();
    std::string label = maker.is_null() ? "" : elided(shape_text(tensor, kWidestSize), kWidestLine);
    for (const json& reader : readers) {
      diagram_.arrows.push_back({from, reader.get<int>(), label, tensor_title(tensor)});
      label.clear();
    }
    if (readers.empty() && !maker.is_null())
      diagram_.arrows.push_back({from, add_box(tensor_box(tensor, Box::Kind::kOutput)), "", tensor_title(tensor)});
  }

  const json& graph_;
  Diagram diagram_;
};

}  // namespace

Diagram diagram_of(const json& graph) { return DiagramMaker(graph).make(); }

}  // namespace attn_opt
