#include "src/cli/report_files.h"

#include <nlohmann/json.hpp>

namespace attn_opt {

Expected<ReportFiles> ReportFiles::create(const std::vector<std::string>& paths) {
  ReportFiles reports;
  for (const std::string& path : paths) {
    if (std::filesystem::path(path).extension() != ".json") {
      return fail(ErrorCode::kUsage, "--report", "'" + path + "' is of no format that reports have",
                  "the extension says which: .json");
    }
    ATTN_OPT_TRY(OutputFile file, OutputFile::create(path));
    reports.files_.push_back(std::move(file));
  }
  return reports;
}

Status ReportFiles::write(const Report& report) {
  if (files_.empty()) return {};
  const std::string text = to_json(report).dump(2) + "\n";
  for (OutputFile& file : files_) {
    ATTN_OPT_CHECK(file.append(text));
    ATTN_OPT_CHECK(file.replace_target());
  }
  return {};
}

}  // namespace attn_opt
