// Files of drawings alone: SVG, and DOT for whoever lays out by himself.
#include <fmt/format.h>

#include <algorithm>

#include "src/report/drawing/dot.h"
#include "src/report/drawing/drawings.h"
#include "src/report/drawing/svg.h"
#include "src/report/report_streams.h"
#include "src/report/xml.h"

namespace attn_opt {

extern const char* const kDrawingCss;  // made from src/report/html

namespace {

/// A digraph for each model, a cluster for each drawing.
class Dot : public ReportStream {
 public:
  std::string begin() override { return {}; }
  std::string add(const ModelOutcome& model) override {
    std::string text = "digraph " + dot_quoted(model.input) + " {\n";
    if (!model.report.is_null()) {
      for_each_drawing(model.report, [&text](const GroupDrawing& drawing) {
        const std::string name = fmt::format("g{}_{}", drawing.group, drawing.side);
        text += fmt::format("  subgraph cluster_{} {{\n    label={};\n{}  }}\n", name, dot_quoted(drawing.caption()),
                            dot_statements(diagram_of(*drawing.graph), name + "_"));
      });
    }
    return text + "}\n";
  }
  std::string end() override { return {}; }
};

/// Groups below each other, before beside after. The size comes first in the file, so that all is kept until the end.
class Svg : public ReportStream {
 public:
  std::string begin() override { return {}; }
  std::string add(const ModelOutcome& model) override {
    heading(model.input);
    if (model.report.is_null()) return {};
    for_each_drawing(model.report, [this](const GroupDrawing& drawing) { draw(drawing); });
    end_row();
    return {};
  }
  std::string end() override {
    return fmt::format(
        R"svg(<svg xmlns="http://www.w3.org/2000/svg" width="{0:.0f}" height="{1:.0f}" viewBox="0 0 {0:.0f} {1:.0f}"><style>{2}</style>
<rect width="100%" height="100%" fill="var(--page)"/>
<g class="diagram">{3}</g></svg>
)svg",
        width_ + kGap, top_, xml_escaped(kDrawingCss), drawn_);
  }

 private:
  static constexpr double kGap = 24, kCaption = 22;

  void caption(const std::string& words) {
    drawn_ += fmt::format("<text class=\"caption\" x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n", left_, top_, xml_escaped(words));
  }

  void heading(const std::string& words) {
    caption(words);
    top_ += kCaption;
  }

  void draw(const GroupDrawing& drawing) {
    const Diagram diagram = diagram_of(*drawing.graph);
    const auto place = placed(diagram);
    if (drawing.side == "before") {
      end_row();
      heading(drawing.name + (place ? "" : ": this attn-opt was built without Graphviz, which places drawings"));
    }
    if (!place) return;
    caption(drawing.has_both_sides ? drawing.side : "as it was found");
    drawn_ += svg_element(diagram, *place, drawing.caption(), left_, top_ + kCaption / 2) + "\n";
    left_ += place->width + 2 * kGap;
    row_height_ = std::max(row_height_, place->height + kCaption + kGap);
    width_ = std::max(width_, left_);
  }

  void end_row() {
    top_ += row_height_;
    row_height_ = 0;
    left_ = kGap;
  }

  std::string drawn_;
  double left_ = kGap, top_ = kGap, width_ = 600, row_height_ = 0;
};

}  // namespace

std::unique_ptr<ReportStream> dot_stream() { return std::make_unique<Dot>(); }
std::unique_ptr<ReportStream> svg_stream() { return std::make_unique<Svg>(); }

}  // namespace attn_opt
