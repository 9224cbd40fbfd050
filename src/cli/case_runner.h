// Runs one pattern regression case: optimises its model and checks what came of it.
#pragma once

#include <string>
#include <vector>

#include "src/cli/case_file.h"

namespace attn_opt {

struct CaseResult {
  std::string name;
  std::vector<std::string> failures;  ///< each in one or a few lines; none: passed
  bool golden_written = false;
};

/// Besides what the case expects: the result is valid ONNX (with shape inference), its opset is raised if and
/// only if something was fused, a second run changes nothing, nothing fused leaves the model as it was, and
/// the outputs before and after agree. UPDATE_GOLDEN rewrites the golden file instead of comparing with it.
CaseResult run_case(const std::filesystem::path& path, bool update_golden);

}  // namespace attn_opt
