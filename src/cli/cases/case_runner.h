// Runs one pattern regression case: optimises its model and checks what came of it.
#pragma once

#include <string>
#include <vector>

#include "src/cli/cases/case_file.h"

namespace attn_opt {

struct CaseResult {
  std::filesystem::path path;
  std::string name;                        ///< the path, where the case does not say
  std::vector<std::string> failures = {};  ///< each in one or a few lines; none: passed
  bool golden_written = false;
  double seconds = 0;
};

struct CaseSettings {
  CasePatterns patterns = {};
  bool update_golden = false;  ///< rewrite a golden file that differs instead of comparing with it
};

/// Besides what the case expects: the result is valid ONNX (with shape inference), its opset is raised if and
/// only if something was fused, a second run changes nothing, nothing fused leaves the model as it was, and
/// the outputs before and after agree.
CaseResult run_case(const std::filesystem::path& path, const CaseSettings& settings = {});

/// What is printed of RESULT: a failure with its reasons, that a golden file was written, with VERBOSE also that it passed.
std::string text_of(const CaseResult& result, bool verbose);
/// "3 passed, 1 failed".
std::string summary_of(size_t cases, size_t failed);

}  // namespace attn_opt
