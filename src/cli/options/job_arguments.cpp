#include "src/cli/options/job_arguments.h"

#include <charconv>
#include <map>

#include "src/cli/baseline.h"
#include "src/cli/options/command_line.h"

namespace attn_opt {
namespace {

const std::map<std::string, ExternalData> kExternalData = {
    {"auto", ExternalData::kAuto}, {"inline", ExternalData::kInline}, {"external", ExternalData::kExternal}};

const std::map<std::string, NewModels> kNewModels = {
    {"fail", NewModels::kFail}, {"warn", NewModels::kWarn}, {"accept", NewModels::kAccept}};

Status set_required(const std::string& word, Requirements& required) {
  if (word.empty() || word == "all") {
    required.all_fused = !word.empty();
    return {};
  }
  int number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size() || number < 0) {
    return fail(ErrorCode::kUsage, "--require-fused", "'" + word + "' is neither a number nor 'all'");
  }
  required.fused = number;
  return {};
}

/// What says how a whole model is run needs one that is.
Status check_trial(const CLI::App& app, const OptimizeJob& job) {
  if (job.optimize.verify == "model") return {};
  for (const std::string option : {"--test-data", "--dim", "--rtol", "--atol", "--threads", "--memory-limit"}) {
    const CLI::Option* known = app.get_option_no_throw(option);
    if (known != nullptr && known->count() > 0) return fail(ErrorCode::kUsage, option, "needs --verify model");
  }
  return {};
}

}  // namespace

void declare_job_options(CLI::App& app, JobArguments& given) {
  declare_optimize_options(app, given.job.optimize);
  app.add_option("--on-mismatch", given.on_mismatch, "A site whose numbers differ is left as it was (skip) or fails")
      ->check(CLI::IsMember({"skip", "fail"}))
      ->capture_default_str();
  declare_run_options(app, given.job.trial);
  app.add_option("--require-fused", given.require_fused, "Fail unless so many sites, or all, are fused");
  app.add_flag("--allow-none", given.job.requirements.allow_none,
               "With --require-fused all: a model without any attention passes");
  app.add_flag("--check", given.job.requirements.check, "Write nothing; fail if anything could be fused");
  auto* baseline = app.add_option("--baseline", given.baseline, "Fail if a site is not fused that this file says was");
  app.add_option("--baseline-new", given.baseline_new,
                 "A model that the baseline does not have fails, passes with a warning (warn) or passes (accept)")
      ->check(CLI::IsMember({"fail", "warn", "accept"}))
      ->capture_default_str()
      ->needs(baseline);
  app.add_flag("--update-baseline", given.update_baseline, "Write what this run fuses into the baseline instead of checking")
      ->needs(baseline);
  app.add_option("--external-data", given.external_data,
                 "Large tensors: in the model, but in a file beside it above 2 GB (auto); inline; external")
      ->check(CLI::IsMember(kExternalData))
      ->capture_default_str();
  declare_data_folders(app, given.job.input.data_folders);
}

Status settle(JobArguments& given, const CLI::App& app) {
  OptimizeJob& job = given.job;
  ATTN_OPT_CHECK(set_required(given.require_fused, job.requirements));
  ATTN_OPT_CHECK(check_trial(app, job));
  if (!given.baseline.empty() && !given.update_baseline) {
    ATTN_OPT_TRY(Baseline baseline, Baseline::read(given.baseline));
    baseline.set_new_models(kNewModels.at(given.baseline_new));
    job.requirements.baseline = std::make_shared<const Baseline>(std::move(baseline));
  }
  job.requirements.fail_on_mismatch = given.on_mismatch == "fail";
  job.save.external_data = kExternalData.at(given.external_data);
  return {};
}

}  // namespace attn_opt
