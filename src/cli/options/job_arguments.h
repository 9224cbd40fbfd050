// The options of the main job but for the model, where it is written and reports: of the main command and of batches.
#pragma once

#include <string>

#include "src/cli/optimize_job.h"

namespace attn_opt {

struct JobArguments {
  OptimizeJob job;
  std::string require_fused, baseline, baseline_new = "fail", on_mismatch = "skip", external_data = "auto";
  bool update_baseline = false;
};

void declare_job_options(CLI::App& app, JobArguments& given);

/// Enters what the options say into GIVEN's job, once APP has parsed. Errors: kUsage, kInvalidInput (a baseline that
/// cannot be read).
Status settle(JobArguments& given, const CLI::App& app);

}  // namespace attn_opt
