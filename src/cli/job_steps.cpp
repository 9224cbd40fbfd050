#include "src/cli/job_steps.h"

#include <chrono>

#include "src/verify/seconds.h"

namespace attn_opt {
namespace {

Status check_result(const Model& model) {
  if (auto valid = check_model(model); !valid) {
    return fail(ErrorCode::kInvalidInput, model.path.string(), "its rewritten form " + valid.error().what,
                "nothing was written; please report this model");
  }
  return {};
}

Status write(const OptimizeJob& job, const Model& model, Report& report,
             const std::function<void(double part)>& progress) {
  const auto begin = std::chrono::steady_clock::now();
  SaveOptions save = job.save;
  save.progress = progress;
  ATTN_OPT_CHECK(report.changed ? save_model(model, job.output, save) : copy_model(model, job.output, save));
  report.seconds_write = seconds_since(begin);
  report.output = job.output;
  return {};
}

Expected<ModelTrial> model_trial(const OptimizeJob& job) {
  ModelTrial trial;
  trial.test_data = job.test_data;
  ATTN_OPT_TRY(trial.sizes, only_sizes_of(job.trial));
  trial.relative = job.trial.rtol;
  trial.absolute = job.trial.atol;
  trial.threads = job.trial.threads;
  trial.memory_limit = job.trial.memory_limit;
  return trial;
}

}  // namespace

Expected<OptimizeOptions> options_of(const OptimizeJob& job) {
  ATTN_OPT_TRY(OptimizeOptions options, to_options(job.optimize));
  ATTN_OPT_TRY(options.trial, model_trial(job));
  return options;
}

Status check_outcome(const OptimizeJob& job, const Model& model, const Report& report) {
  ATTN_OPT_CHECK(check_requirements(job.requirements, report));
  return report.changed ? check_result(model) : Status{};
}

Status finish(const OptimizeJob& job, const Model& model, Report& report,
              const std::function<void(double part)>& progress) {
  ATTN_OPT_CHECK(check_outcome(job, model, report));
  return job.output.empty() || job.requirements.check ? Status{} : write(job, model, report, progress);
}

}  // namespace attn_opt
