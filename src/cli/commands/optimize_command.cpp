#include <spdlog/spdlog.h>

#include <filesystem>
#include <map>
#include <utility>

#include "src/cli/commands/commands.h"
#include "src/cli/options/job_arguments.h"
#include "src/cli/report_files.h"
#include "src/io/model_format.h"
#include "src/io/output_file.h"

namespace attn_opt {
namespace {

const std::map<std::string, Progress::Mode> kProgressModes = {
    {"auto", Progress::Mode::kAuto}, {"always", Progress::Mode::kAlways}, {"never", Progress::Mode::kNever}};

struct OptimizeCommandArguments : JobArguments {
  std::string progress = "auto";
  bool dry_run = false;
};

std::string footer() {
  std::string text = "Commands (attn-opt COMMAND --help says more):\n";
  for (const Command& command : commands()) {
    std::string name(command.name);
    name.resize(12, ' ');
    text += "  " + name + std::string(command.summary) + "\n";
  }
  return text;
}

void declare(CLI::App& app, OptimizeCommandArguments& given) {
  OptimizeJob& job = given.job;
  declare_model(app, "INPUT", job.input);
  app.add_option("-o,--output", job.output, "Where the model is written (- for standard output); without: a dry run");
  app.add_flag("--dry-run", given.dry_run, "Write no model, even with -o");
  declare_job_options(app, given);
  auto* test_data =
      app.add_option("--test-data", job.test_data, "With --verify model: folder of input_N.pb; otherwise inputs are drawn");
  app.get_option("--dim")->excludes(test_data);
  declare_list(app, "--report", job.reports,
               "Write a report: FILE.html, .json, .md, .sarif, .xml (JUnit), .svg, .dot, or FORMAT:FILE (repeatable)");
  app.add_option("--dump-matches", job.dump_matches, "Folder for a regression case of each fused site, equal ones once");
  app.add_option("--progress", given.progress, "Show progress: auto, always or never")
      ->check(CLI::IsMember(kProgressModes))
      ->capture_default_str();
  declare_verbosity(app, job.verbosity);
  app.set_version_flag("--version", "attn-opt " ATTN_OPT_VERSION);
  app.footer(footer());
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

/// A run may take long: what is written at its end is looked at first.
Status check_output(const OptimizeJob& job) {
  namespace fs = std::filesystem;
  const fs::path output = job.output, ending = output.extension();
  if (job.output.empty() || job.output == "-" || job.requirements.check) return {};
  std::error_code none;
  ATTN_OPT_CHECK(check_folder(output));
  if (ending != ".onnx" && !is_text(output) && (!fs::exists(output, none) || fs::is_regular_file(output, none)))
    spdlog::warn("{}: is written as an ONNX model; its name does not end in .onnx", job.output);
  return {};
}

Expected<int> optimize_model(OptimizeCommandArguments& given, const CLI::App& app) {
  OptimizeJob& job = given.job;
  ATTN_OPT_CHECK(settle(given, app));
  ATTN_OPT_CHECK(check_reports(job));
  if (given.dry_run) job.output.clear();
  if (given.update_baseline) job.baseline_to_update = given.baseline;
  job.progress = kProgressModes.at(given.progress);
  set_up_log(job.verbosity);
  ATTN_OPT_CHECK(check_output(job));
  ATTN_OPT_CHECK(run_job(job));
  return 0;
}

}  // namespace

DeclaredCommand optimize_command() {
  return declared("attn-opt", "Finds attention in an ONNX model and rewrites it into ONNX Attention nodes.", declare,
                  optimize_model);
}

}  // namespace attn_opt
