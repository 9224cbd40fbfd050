#include "src/cli/job_steps.h"

#include <chrono>
#include <filesystem>

#include "src/verify/seconds.h"

namespace attn_opt {
namespace {

Status write(const OptimizeJob& job, const Model& model, Report& report, const std::function<void(double part)>& progress) {
  const auto begin = std::chrono::steady_clock::now();
  SaveOptions save = job.save;
  save.progress = progress;
  ATTN_OPT_CHECK(report.changed ? save_model(model, job.output, save) : copy_model(model, job.output, save));
  report.seconds_write = seconds_since(begin);
  report.output = job.output;
  report.output_bytes = bytes_of_file(job.output);
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

bool is_valid(const Model& model, const Report& report) { return !report.changed || check_model(model).has_value(); }

/// How many sites have to be fused for the result to be invalid, where it is with FUSED of them; the fewest found.
Expected<int> fewest_invalid(const Model& model, OptimizeOptions options, int fused) {
  options.progress = {};
  for (int valid = 0; valid + 1 < fused;) {
    options.stop_after = (valid + fused) / 2;
    ATTN_OPT_TRY(Model tried, as_it_was_read(model));
    ATTN_OPT_TRY(const Report report, optimize(tried, options));
    (is_valid(tried, report) ? valid : fused) = options.stop_after;
  }
  return fused;
}

}  // namespace

Expected<Report> optimize_to_valid(Model& model, OptimizeOptions options, Workings* workings) {
  constexpr size_t kMostLeft = 4;
  std::vector<std::string> fused;
  const OptimizeOptions given = options;
  options.on_commit = [&](const ModelGraph& view, const std::string& site) {
    fused.push_back(site);
    if (given.on_commit) given.on_commit(view, site);
  };
  ATTN_OPT_TRY(Report report, optimize(model, options, workings));
  while (!is_valid(model, report)) {
    OptimizeOptions again = given;
    again.leave = options.leave;
    ATTN_OPT_TRY(const int fewest, fewest_invalid(model, again, static_cast<int>(fused.size())));
    options.leave.insert(fused[static_cast<size_t>(fewest - 1)]);
    if (options.leave.size() > kMostLeft) options.leave.insert(fused.begin(), fused.end());
    fused.clear();
    if (workings) workings->reset();
    ATTN_OPT_TRY(model, as_it_was_read(model));
    ATTN_OPT_TRY(report, optimize(model, options, workings));
  }
  return report;
}

std::optional<int64_t> bytes_of_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  const auto bytes = std::filesystem::file_size(path, error);
  return error ? std::nullopt : std::optional(static_cast<int64_t>(bytes));
}

Expected<OptimizeOptions> options_of(const OptimizeJob& job) {
  ATTN_OPT_TRY(OptimizeOptions options, to_options(job.optimize));
  ATTN_OPT_TRY(options.trial, model_trial(job));
  return options;
}

Status finish(const OptimizeJob& job, const Model& model, Report& report, const std::function<void(double part)>& progress) {
  ATTN_OPT_CHECK(check_requirements(job.requirements, report));
  return job.output.empty() || job.requirements.check ? Status{} : write(job, model, report, progress);
}

}  // namespace attn_opt
