#include "src/report/drawing/svg.h"

#include <fmt/format.h>

#include <cmath>

#include "src/report/xml.h"

namespace attn_opt {
namespace {

using Box = Diagram::Box;

std::string title(const std::string& text) {
  std::string lines;  // a line break is kept where xml_escaped() would make it a blank
  for (size_t from = 0; from <= text.size();) {
    const size_t end = std::min(text.find('\n', from), text.size());
    lines += (from == 0 ? "" : "\n") + xml_escaped(text.substr(from, end - from));
    from = end + 1;
  }
  return "<title>" + lines + "</title>";
}

std::string text_at(const char* css_class, double x, double y, const std::string& words) {
  return fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", css_class, x, y, xml_escaped(words));
}

const char* class_of(Box::Kind kind) {
  switch (kind) {
    case Box::Kind::kOperator: return "operator";
    case Box::Kind::kInput: return "tensor input";
    case Box::Kind::kOutput: return "tensor output";
  }
  return "";
}

std::string box_element(const Box& box, const Point& centre) {
  const double left = centre.first - box.width / 2, top = centre.second - box.height / 2;
  const double radius = box.kind == Box::Kind::kOperator ? 4 : std::min(box.height / 2, 14.0);
  std::string text = fmt::format("<g class=\"{} {}\">{}", class_of(box.kind), xml_escaped(box.role), title(box.title));
  text += fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="{:.0f}"/>)", left, top, box.width,
                      box.height, radius);
  double y = top + kHeadingHeight - 1;
  text += text_at("heading", centre.first, y, box.heading);
  for (const std::string& line : box.lines) text += text_at("line", centre.first, y += kLineHeight, line);
  return text + "</g>\n";
}

/// A triangle from the end of the curve to its tip.
std::string head(const Point& base, const Point& tip) {
  constexpr double kHalfWidth = 3.5;
  const double dx = tip.first - base.first, dy = tip.second - base.second;
  const double length = std::max(std::hypot(dx, dy), 1e-6), nx = -dy / length * kHalfWidth, ny = dx / length * kHalfWidth;
  return fmt::format(R"(<path class="head" d="M{:.1f},{:.1f} L{:.1f},{:.1f} L{:.1f},{:.1f} Z"/>)", base.first + nx,
                     base.second + ny, tip.first, tip.second, base.first - nx, base.second - ny);
}

std::string arrow_element(const Diagram::Arrow& arrow, const PlacedDiagram::PlacedArrow& place) {
  if (place.curve.empty()) return {};
  std::string path;
  for (size_t i = 0; i < place.curve.size(); ++i)
    path += fmt::format("{}{:.1f},{:.1f}", i == 0 ? "M" : i == 1 ? " C" : " ", place.curve[i].first, place.curve[i].second);
  std::string text =
      "<g class=\"arrow\">" + title(arrow.title) + "<path d=\"" + path + "\"/>" + head(place.curve.back(), place.head);
  constexpr double kBelowCentre = 3.5, kFromLine = 3;
  if (place.label) text += text_at("shape", place.label->first + kFromLine, place.label->second + kBelowCentre, arrow.label);
  return text + "</g>\n";
}

}  // namespace

std::string svg_element(const Diagram& diagram, const PlacedDiagram& place, const std::string& label, double left, double top) {
  constexpr double kMargin = 3;
  const double width = place.width + 2 * kMargin, height = place.height + 2 * kMargin;
  std::string text = fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" class="diagram" role="img" aria-label="{4}" x="{0:.0f}" y="{1:.0f}" width="{2:.0f}" height="{3:.0f}" viewBox="{5:.0f} {5:.0f} {2:.0f} {3:.0f}">)",
      left, top, width, height, xml_escaped(label), -kMargin);
  for (size_t i = 0; i < diagram.arrows.size(); ++i) text += arrow_element(diagram.arrows[i], place.arrows[i]);
  for (size_t i = 0; i < diagram.boxes.size(); ++i) text += box_element(diagram.boxes[i], place.centres[i]);
  return text + "</svg>";
}

}  // namespace attn_opt
