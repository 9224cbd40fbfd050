// The files that --report asks for.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "attn_opt/report.h"
#include "src/io/output_file.h"

namespace attn_opt {

class ReportFiles {
 public:
  /// Makes sure that PATHS can be written before any work is done. Errors: kUsage (an extension that is none
  /// of a report's), kOutput.
  static Expected<ReportFiles> create(const std::vector<std::string>& paths);
  /// Error: kOutput.
  Status write(const Report& report);

 private:
  std::vector<OutputFile> files_;
};

}  // namespace attn_opt
