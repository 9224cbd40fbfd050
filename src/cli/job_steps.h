// What a job does before and after optimize(): for callers that print nothing themselves.
#pragma once

#include "src/cli/optimize_job.h"

namespace attn_opt {

/// What JOB asks of optimize(), but for progress. Error: kUsage.
Expected<OptimizeOptions> options_of(const OptimizeJob& job);

/// Its requirements, and that what would be written is valid ONNX. Errors: kRequirement, kMismatch, kInvalidInput.
Status check_outcome(const OptimizeJob& job, const Model& model, const Report& report);

/// check_outcome(), and the writing if JOB has an output, which REPORT then names. PROGRESS as in SaveOptions. Errors:
/// those, and kOutput.
Status finish(const OptimizeJob& job, const Model& model, Report& report,
              const std::function<void(double part)>& progress = {});

}  // namespace attn_opt
