// What a job does before and after optimize(): for callers that print nothing themselves.
#pragma once

#include "src/cli/optimize_job.h"

namespace attn_opt {

/// What JOB asks of optimize(), but for progress. Error: kUsage.
Expected<OptimizeOptions> options_of(const OptimizeJob& job);

/// None for what is no file.
std::optional<int64_t> bytes_of_file(const std::string& path);

/// optimize(), and what it makes is valid ONNX: a site that is in the way of that is left, with the miss "site.invalid". MODEL
/// was read by load_model or parse_model. Errors: those of optimize().
Expected<Report> optimize_to_valid(Model& model, OptimizeOptions options, Workings* workings = nullptr);

/// Checks JOB's requirements, and writes MODEL if JOB has an output, which REPORT then names. PROGRESS as in SaveOptions.
/// Errors: kRequirement, kMismatch, kOutput.
Status finish(const OptimizeJob& job, const Model& model, Report& report,
              const std::function<void(double part)>& progress = {});

}  // namespace attn_opt
