#include "src/cli/report_files.h"

#include <spdlog/spdlog.h>

#include <set>

#include "src/report/drawing/placement.h"

namespace attn_opt {

Expected<ReportTarget> report_target(const std::string& word) {
  const size_t colon = word.find(':');
  if (colon != std::string::npos && colon + 1 < word.size()) {
    if (const auto format = report_format_named(word.substr(0, colon))) return ReportTarget{*format, word.substr(colon + 1)};
  }
  if (const auto format = report_format_of(word)) return ReportTarget{*format, word};
  return fail(ErrorCode::kUsage, "--report", "'" + word + "' is of no format that reports have",
              "the ending says which: .html, .json, .md, .sarif, .xml (JUnit), .svg or .dot; or write html:FILE, json:FILE, "
              "md:FILE, sarif:FILE, "
              "junit:FILE, svg:FILE or dot:FILE");
}

Expected<ReportFiles> ReportFiles::create(const std::vector<std::string>& words, ReportScope scope) {
  ReportFiles reports;
  std::set<std::string> paths;
  for (const std::string& word : words) {
    ATTN_OPT_TRY(const ReportTarget target, report_target(word));
    if (!paths.insert(target.path).second)
      return fail(ErrorCode::kUsage, "--report", "'" + target.path + "' is given twice", "each report needs a file of its own");
    if (target.format == ReportFormat::kSvg && !can_place())
      spdlog::warn("{}: nothing is drawn, since this attn-opt was built without Graphviz; .dot and .md need none", target.path);
    ATTN_OPT_TRY(OutputFile file, OutputFile::create(target.path));
    reports.use_standard_output_ |= target.path == "-";
    reports.files_.push_back({std::move(file), make_report_stream(target.format, scope)});
  }
  for (auto& [file, stream] : reports.files_) {
    ATTN_OPT_CHECK(file.append(stream->begin()));
  }
  return reports;
}

Status ReportFiles::add(const ModelOutcome& model) {
  for (auto& [file, stream] : files_) {
    ATTN_OPT_CHECK(file.append(stream->add(model)));
  }
  return {};
}

Status ReportFiles::finish() {
  for (auto& [file, stream] : files_) {
    ATTN_OPT_CHECK(file.append(stream->end()));
    ATTN_OPT_CHECK(file.replace_target());
  }
  return {};
}

}  // namespace attn_opt
