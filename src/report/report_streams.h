// The streams behind make_report_stream().
#pragma once

#include "src/report/report_stream.h"

namespace attn_opt {

std::unique_ptr<ReportStream> json_stream(ReportScope scope);
std::unique_ptr<ReportStream> markdown_stream(ReportScope scope);
std::unique_ptr<ReportStream> sarif_stream();
std::unique_ptr<ReportStream> junit_stream();
std::unique_ptr<ReportStream> html_stream(ReportScope scope);
std::unique_ptr<ReportStream> svg_stream();
std::unique_ptr<ReportStream> dot_stream();

}  // namespace attn_opt
