#include <charconv>
#include <filesystem>
#include <map>
#include <utility>

#include "src/cli/commands.h"
#include "src/cli/optimize_job.h"
#include "src/cli/report_files.h"

namespace attn_opt {
namespace {

const std::map<std::string, Progress::Mode> kProgressModes = {
    {"auto", Progress::Mode::kAuto}, {"always", Progress::Mode::kAlways}, {"never", Progress::Mode::kNever}};

const std::map<std::string, ExternalData> kExternalData = {
    {"auto", ExternalData::kAuto}, {"inline", ExternalData::kInline}, {"external", ExternalData::kExternal}};

struct OptimizeCommandArguments {
  OptimizeJob job;
  std::string require_fused, on_mismatch = "skip", progress = "auto", external_data = "auto";
};

std::string footer() {
  std::string text = "Commands (attn-opt COMMAND --help says more):\n";
  for (const Command& command : commands()) {
    std::string name(command.name);
    name.resize(10, ' ');
    text += "  " + name + std::string(command.summary) + "\n";
  }
  return text;
}

void declare(CLI::App& app, OptimizeCommandArguments& words) {
  OptimizeJob& job = words.job;
  declare_model(app, "INPUT", job.input);
  app.add_option("-o,--output", job.output,
                 "Where the model is written (- for standard output); without: a dry run");
  declare_optimize_options(app, job.optimize);
  app.add_option("--on-mismatch", words.on_mismatch,
                 "A site whose numbers differ is left as it was (skip) or fails")
      ->check(CLI::IsMember({"skip", "fail"}))
      ->capture_default_str();
  auto* test_data = app.add_option("--test-data", job.test_data,
                                   "With --verify model: folder of input_N.pb; otherwise inputs are drawn");
  declare_run_options(app, job.trial);
  app.get_option("--dim")->excludes(test_data);
  declare_list(app, "--report", job.reports, "Write a report: FILE.json, .md, .sarif, .xml (JUnit), or FORMAT:FILE (repeatable)");
  app.add_option("--dump-matches", job.dump_matches, "Folder for a regression case of each fused site, equal ones once");
  app.add_option("--require-fused", words.require_fused, "Fail unless so many sites, or all, are fused");
  app.add_flag("--check", job.requirements.check, "Write nothing; fail if anything could be fused");
  app.add_option("--external-data", words.external_data,
                 "Large tensors: in the model, but in a file beside it above 2 GB (auto); inline; external")
      ->check(CLI::IsMember(kExternalData))
      ->capture_default_str();
  declare_data_folders(app, job.input.data_folders);
  app.add_option("--progress", words.progress, "Show progress: auto, always or never")
      ->check(CLI::IsMember(kProgressModes))
      ->capture_default_str();
  declare_verbosity(app, job.verbosity);
  app.set_version_flag("--version", "attn-opt " ATTN_OPT_VERSION);
  app.footer(footer());
}

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

bool same_file(const std::string& one, const std::string& other) {
  if (one.empty() || one == "-" || other == "-") return false;
  std::error_code none;
  return std::filesystem::weakly_canonical(one, none) == std::filesystem::weakly_canonical(other, none);
}

Status check_reports(const OptimizeJob& job) {
  bool standard_output_is_taken = job.output == "-";
  for (const std::string& word : job.reports) {
    ATTN_OPT_TRY(const ReportTarget report, report_target(word));
    if (same_file(job.input.path, report.path) || same_file(job.output, report.path))
      return fail(ErrorCode::kUsage, "--report", "'" + report.path + "' is the model", "name another file");
    if (report.path == "-" && std::exchange(standard_output_is_taken, true))
      return fail(ErrorCode::kUsage, "--report", "standard output is taken already", "name a file");
  }
  return {};
}

/// What says how a whole model is run needs one that is.
Status check_trial(const CLI::App& app, const OptimizeJob& job) {
  if (job.optimize.verify == "model") return {};
  for (const std::string option : {"--test-data", "--dim", "--rtol", "--atol", "--threads", "--memory-limit"}) {
    if (app.count(option) > 0) return fail(ErrorCode::kUsage, option, "needs --verify model");
  }
  return {};
}

Expected<int> optimize_model(OptimizeCommandArguments& words, const CLI::App& app) {
  OptimizeJob& job = words.job;
  ATTN_OPT_CHECK(set_required(words.require_fused, job.requirements));
  ATTN_OPT_CHECK(check_reports(job));
  ATTN_OPT_CHECK(check_trial(app, job));
  job.requirements.fail_on_mismatch = words.on_mismatch == "fail";
  job.progress = kProgressModes.at(words.progress);
  job.save.external_data = kExternalData.at(words.external_data);
  set_up_log(job.verbosity);
  ATTN_OPT_CHECK(run_job(job));
  return 0;
}

}  // namespace

DeclaredCommand optimize_command() {
  return declared("attn-opt", "Finds attention in an ONNX model and rewrites it into ONNX Attention nodes.", declare,
                  optimize_model);
}

}  // namespace attn_opt
