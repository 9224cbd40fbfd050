// The files that --report asks for.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "attn_opt/status.h"
#include "src/io/output_file.h"
#include "src/report/report_stream.h"

namespace attn_opt {

/// A value of --report: FILE, whose ending says the format, or FORMAT:FILE.
struct ReportTarget {
  ReportFormat format = ReportFormat::kJson;
  std::string path;  ///< "-": standard output
};
/// Error: kUsage (no format).
Expected<ReportTarget> report_target(const std::string& word);

class ReportFiles {
 public:
  /// Makes sure that all can be written before any work is done. Errors: kUsage, kOutput.
  static Expected<ReportFiles> create(const std::vector<std::string>& words, ReportScope scope);
  /// Error: kOutput.
  Status add(const ModelOutcome& model);
  /// Ends the files and puts them in their places. Error: kOutput.
  Status finish();

  bool empty() const { return files_.empty(); }
  /// Does one go to standard output?
  bool use_standard_output() const { return use_standard_output_; }

 private:
  struct File {
    OutputFile file;
    std::unique_ptr<ReportStream> stream;
  };
  std::vector<File> files_;
  bool use_standard_output_ = false;
};

}  // namespace attn_opt
