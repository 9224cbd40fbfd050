// What a case's result is checked for.
#pragma once

#include <string>
#include <vector>

#include "attn_opt/report.h"
#include "src/cli/cases/case_file.h"

namespace attn_opt {

using Failures = std::vector<std::string>;

inline void expect_equal(const std::string& what, const std::string& expected, const std::string& was, Failures& failures) {
  if (expected != was) failures.push_back(what + ": expected " + expected + ", was " + was);
}

/// EXPECT lines against the report and the model that came out.
void check_expectations(const Expectations& expect, const Report& report, const onnx::ModelProto& result, Failures& failures);

/// Outputs of BEFORE and AFTER on the inputs that the case draws.
void check_outputs(const Case& one, const Model& before, const Model& after, Failures& failures);

}  // namespace attn_opt
