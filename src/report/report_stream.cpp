#include "src/report/report_stream.h"

#include <array>
#include <utility>

#include "src/report/report_streams.h"

namespace attn_opt {
namespace {

using Named = std::pair<std::string_view, ReportFormat>;

constexpr std::array kNames = {Named("json", ReportFormat::kJson),   Named("md", ReportFormat::kMarkdown),
                               Named("sarif", ReportFormat::kSarif), Named("junit", ReportFormat::kJunit),
                               Named("html", ReportFormat::kHtml),   Named("svg", ReportFormat::kSvg),
                               Named("dot", ReportFormat::kDot)};
/// The first that fits counts.
constexpr std::array kEndings = {Named(".sarif.json", ReportFormat::kSarif), Named(".sarif", ReportFormat::kSarif),
                                 Named(".json", ReportFormat::kJson),        Named(".md", ReportFormat::kMarkdown),
                                 Named(".xml", ReportFormat::kJunit),        Named(".html", ReportFormat::kHtml),
                                 Named(".svg", ReportFormat::kSvg),          Named(".dot", ReportFormat::kDot)};

}  // namespace

std::unique_ptr<ReportStream> make_report_stream(ReportFormat format, ReportScope scope) {
  switch (format) {
    case ReportFormat::kJson: return json_stream(scope);
    case ReportFormat::kMarkdown: return markdown_stream(scope);
    case ReportFormat::kSarif: return sarif_stream();
    case ReportFormat::kJunit: return junit_stream();
    case ReportFormat::kHtml: return html_stream(scope);
    case ReportFormat::kSvg: return svg_stream();
    case ReportFormat::kDot: return dot_stream();
  }
  return json_stream(scope);
}

std::optional<ReportFormat> report_format_named(std::string_view name) {
  for (const auto& [known, format] : kNames)
    if (name == known) return format;
  return std::nullopt;
}

std::optional<ReportFormat> report_format_of(std::string_view path) {
  for (const auto& [ending, format] : kEndings)
    if (path.ends_with(ending)) return format;
  return std::nullopt;
}

}  // namespace attn_opt
