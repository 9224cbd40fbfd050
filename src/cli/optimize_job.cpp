#include "src/cli/optimize_job.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "src/cli/baseline.h"
#include "src/cli/cases/case_output.h"
#include "src/cli/color.h"
#include "src/cli/job_steps.h"
#include "src/cli/report_files.h"
#include "src/cli/trace_log.h"
#include "src/io/output_file.h"
#include "src/report/drawing/layout.h"
#include "src/verify/seconds.h"

namespace attn_opt {
namespace {

/// What has a part for each node or site. It lives until the process ends, which frees it at once.
struct Held {
  Model model;
  Workings workings;
  Report report;
};

/// " (195 kB before, 190 kB now)" of the files of models, without their data files; nothing of streams.
std::string sizes_phrase(const Report& report) {
  std::error_code failed;
  const auto before = std::filesystem::file_size(report.input, failed);
  if (failed) return {};
  const auto after = std::filesystem::file_size(report.output, failed);
  if (failed) return {};
  return fmt::format(" ({} before, {} now)", rounded_bytes(static_cast<int64_t>(before)),
                     rounded_bytes(static_cast<int64_t>(after)));
}

std::string closing_line(const OptimizeJob& job, const Report& report) {
  if (report.output.empty()) {
    return job.output.empty() ? "dry run: nothing was written (-o OUTPUT writes)\n" : "nothing was written\n";
  }
  const std::string name = report.output == "-" ? "standard output" : report.output;
  const bool same_bytes = !report.changed && job.save.external_data == ExternalData::kAuto;
  const double seconds = report.seconds_read + report.seconds_match + report.seconds_verify + report.seconds_write;
  return "wrote " + name + (same_bytes ? ", a copy of the input," : sizes_phrase(report)) +
         fmt::format(" in {:.2f} s\n", seconds);
}

void print(const OptimizeJob& job, const Report& report, bool standard_output_is_taken) {
  if (job.verbosity.quiet) return;
  const std::string text = to_text(report, job.verbosity.verbose > 0) + "\n" + closing_line(job, report);
  std::FILE* stream = standard_output_is_taken ? stderr : stdout;
  std::fputs(painted(text, stream).c_str(), stream);
}

Status write_reports(const OptimizeJob& job, ReportFiles& files, const Report& report, const Status& finished) {
  if (files.empty()) return {};
  ModelOutcome outcome = {valid_utf8(report.input), valid_utf8(report.output), 0, "", 0, to_json(report)};
  outcome.seconds = report.seconds_read + report.seconds_match + report.seconds_verify + report.seconds_write;
  if (job.requirements.baseline) job.requirements.baseline->mark_lost(outcome.report);
  if (!finished) {
    outcome.status = exit_status(finished.error().code);
    outcome.message = valid_utf8(finished.error().message());
  }
  ATTN_OPT_CHECK(files.add(outcome));
  return files.finish();
}

Status update_baseline(const std::string& path, const Report& report) {
  ATTN_OPT_TRY(Baseline baseline, Baseline::read_or_begin(path));
  const nlohmann::json document = to_json(report);
  for (const std::string& text : baseline.accepted(document)) spdlog::warn("{}", text);
  baseline.update(document);
  return baseline.write();
}

/// Errors of what is read or made beside the model when that has been written already.
Status check_further_outputs(const OptimizeJob& job) {
  if (!job.baseline_to_update.empty()) {
    ATTN_OPT_CHECK(Baseline::read_or_begin(job.baseline_to_update));
  }
  return job.dump_matches.empty() ? Status() : make_folder(job.dump_matches);
}

}  // namespace

Status run_job(const OptimizeJob& job) {
  ATTN_OPT_TRY(OptimizeOptions options, options_of(job));
  ATTN_OPT_TRY(ReportFiles reports, ReportFiles::create(job.reports, ReportScope::kOne));
  Progress progress(job.progress);
  options.trace = trace_to_log(job.verbosity);
  options.draw = !job.reports.empty();
  options.progress = [&progress](std::string_view step, double part) { progress.update(step, part); };

  ATTN_OPT_CHECK(check_further_outputs(job));

  const auto begin = std::chrono::steady_clock::now();
  static std::optional<Held> held;
  progress.update("reading");
  ATTN_OPT_TRY(Model loaded, load_valid(job.input));
  auto& [model, workings, report] = held.emplace(Held{std::move(loaded), {}, {}});
  const double seconds_read = seconds_since(begin);
  const Model before = job.dump_matches.empty() ? Model{} : model;
  ATTN_OPT_TRY(report, optimize_to_valid(model, options, &workings));
  report.seconds_read = seconds_read;
  report.tool_version = ATTN_OPT_VERSION;
  report.input = job.input.path;
  report.input_bytes = bytes_of_file(job.input.path);
  report.options = to_words(job.optimize);

  progress.update("writing");
  Status finished = finish(job, model, report, [&progress](double part) { progress.update("writing", part); });
  progress.finish();
  report.seconds_total = seconds_since(begin);
  print(job, report, job.output == "-" || reports.use_standard_output());
  spdlog::info("read {:.3f} s, match {:.3f} s, verify {:.3f} s, write {:.3f} s", report.seconds_read, report.seconds_match,
               report.seconds_verify, report.seconds_write);
  ATTN_OPT_CHECK(write_reports(job, reports, report, finished));
  if (!job.dump_matches.empty()) {
    ATTN_OPT_TRY(const auto matches, write_matches(before, report, job.optimize, job.dump_matches));
    for (const Error& error : matches.left_out) spdlog::warn("no case: {}", error.message());
    spdlog::info("wrote {} cases to {}", matches.cases, job.dump_matches);
  }
  if (finished && !job.baseline_to_update.empty()) {
    ATTN_OPT_CHECK(update_baseline(job.baseline_to_update, report));
  }
  return finished;
}

}  // namespace attn_opt
