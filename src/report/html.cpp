// A page that needs nothing but itself. Its files are in html/; the data is the report, and what a browser cannot lay out,
// drawings.
#include <fmt/format.h>

#include "src/report/drawing/drawings.h"
#include "src/report/drawing/svg.h"
#include "src/report/model_entry.h"
#include "src/report/report_streams.h"

namespace attn_opt {

// Made from src/report/html.
extern const char *const kPageHtml, *const kPageCss, *const kDrawingCss, *const kValuesJs, *const kCardsJs, *const kRewritesJs,
                                                                                                                *const kPageJs;

namespace {

using nlohmann::json;

constexpr std::string_view kStyleMark = "<!-- style -->\n", kModelsMark = "<!-- models -->\n",
                           kScriptMark = "<!-- script -->\n";

/// The page's own text up to MARK, from which PAGE then goes on.
std::string taken_up_to(std::string_view mark, std::string_view& page) {
  const size_t end = page.find(mark);
  std::string taken(page.substr(0, end));
  page.remove_prefix(end + mark.size());
  return taken;
}

/// VALUE within a <script>: nothing in it can end that.
std::string in_script(const json& value) {
  std::string text;
  for (const char c : value.dump(-1, ' ', false, json::error_handler_t::replace)) {
    if (c == '<')
      text += "\\u003c";
    else
      text += c;
  }
  return text;
}

std::string drawings_of(const json& report, int model) {
  std::string text;
  for_each_drawing(report, [&](const GroupDrawing& drawing) {
    const Diagram diagram = diagram_of(*drawing.graph);
    const auto place = placed(diagram);
    if (!place) return;
    text += fmt::format("<template data-drawing=\"{}-{}-{}\">{}</template>\n", model, drawing.group, drawing.side,
                        svg_element(diagram, *place, drawing.caption()));
  });
  return text;
}

class Html : public ReportStream {
 public:
  explicit Html(ReportScope scope) : scope_(scope), page_(kPageHtml) {}

  std::string begin() override {
    const std::string head = taken_up_to(kStyleMark, page_) + kDrawingCss + kPageCss;
    return head + taken_up_to(kModelsMark, page_) +
           (scope_ == ReportScope::kMany ? "<script type=\"application/json\" class=\"batch\">{}</script>\n" : "");
  }
  std::string add(const ModelOutcome& model) override {
    const std::string data = "<script type=\"application/json\" class=\"model\">" + in_script(entry_of(model)) + "</script>\n";
    const int number = models_++;
    return data + (model.report.is_null() ? "" : drawings_of(model.report, number));
  }
  std::string end() override {
    const std::string before = taken_up_to(kScriptMark, page_);
    return before + kValuesJs + kCardsJs + kRewritesJs + kPageJs + std::string(page_);
  }

 private:
  ReportScope scope_;
  std::string_view page_;  ///< what is not written yet
  int models_ = 0;
};

}  // namespace

std::unique_ptr<ReportStream> html_stream(ReportScope scope) { return std::make_unique<Html>(scope); }

}  // namespace attn_opt
