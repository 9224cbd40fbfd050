#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <optional>
#include <thread>

#include "src/cli/annotation.h"
#include "src/cli/baseline.h"
#include "src/cli/child_process.h"
#include "src/cli/color.h"
#include "src/cli/commands/batch_inputs.h"
#include "src/cli/commands/batch_state.h"
#include "src/cli/commands/commands.h"
#include "src/cli/options/job_arguments.h"
#include "src/cli/report_files.h"
#include "src/io/output_file.h"
#include "src/report/batch_totals.h"

namespace attn_opt {
namespace {

namespace fs = std::filesystem;

struct BatchArguments : JobArguments {
  std::vector<std::string> words, reports;
  std::string output, root;
  size_t jobs = std::max(1u, std::thread::hardware_concurrency());
  double timeout = 0;
  uint64_t process_memory = 0;
  bool fresh = false;
};

void declare(CLI::App& app, BatchArguments& given) {
  app.add_option("MODELS", given.words, "Folders, models, @LIST of such, a line each (@-: standard input)")->required();
  app.add_option("-o,--output", given.output, "Folder for the outputs, laid out as the inputs are; without: a dry run");
  app.add_option("--root", given.root, "Where the layout of the inputs begins: by default the folder they have in common");
  app.add_option("-j,--jobs", given.jobs, "Models at a time; by default one for each processor")
      ->check(CLI::Range(size_t{1}, size_t{1024}));
  app.add_option("--timeout", given.timeout, "Seconds that a model may take; 0: any")->check(CLI::NonNegativeNumber);
  takes_size(*app.add_option("--process-memory", given.process_memory, "Address space that a model may take, as 8GB"));
  app.add_flag("--fresh", given.fresh, "Run what is finished and unchanged again");
  declare_list(app, "--report", given.reports,
               "Write a report on all: FILE.html, .json, .md, .sarif, .xml (JUnit), .svg, .dot, or FORMAT:FILE");
  declare_job_options(app, given);
  declare_verbosity(app, given.job.verbosity);
}

/// The options of the main job that APP was given.
std::vector<std::string> job_words(const CLI::App& app, bool updates_baseline) {
  CLI::App main_job;
  JobArguments unused;
  declare_job_options(main_job, unused);
  std::vector<std::string> words;
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    const bool of_baseline = name == "--baseline" || name == "--update-baseline";
    if (option->count() == 0 || name == "--help" || main_job.get_option_no_throw(name) == nullptr) continue;
    if (updates_baseline && of_baseline) continue;
    if (option->get_items_expected_max() == 0)
      words.push_back(name);
    else
      for (const std::string& value : option->results()) words.push_back(name + "=" + value);
  }
  return words;
}

/// A folder that goes with its owner.
class TemporaryFolder {
 public:
  TemporaryFolder() = default;
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code none;
    if (!path_.empty()) fs::remove_all(path_, none);
  }
  Expected<fs::path> make() {
    std::string name = (fs::temp_directory_path() / "attn-opt-batch-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) return fail(ErrorCode::kOutput, name, "cannot be made");
    return path_ = name;
  }

 private:
  fs::path path_;
};

class Batch {
 public:
  Batch(const BatchArguments& given, std::vector<BatchInput> inputs, std::vector<std::string> words, BatchState state)
      : given_(given), inputs_(std::move(inputs)), words_(std::move(words)), state_(std::move(state)) {}

  Status run() {
    for (const BatchInput& input : inputs_) {
      if (!given_.fresh && state_.is_finished(input, output_of(input))) continue;
      ATTN_OPT_CHECK(state_.begin(input));
      ATTN_OPT_CHECK(make_output_folder(input));
      pending_.push_back(&input);
      stamps_.push_back({stamp_of_model(input.path), stamp_of_model(output_of(input))});
    }
    done_ = inputs_.size() - pending_.size();
    if (done_ > 0) say(fmt::format("{} finished before and unchanged\n", done_));
    const ChildLimits limits = {given_.process_memory, std::chrono::duration<double>(given_.timeout)};
    return run_children(
        pending_.size(), given_.jobs, limits, [this](size_t job) { return arguments_for(*pending_[job]); },
        [this](size_t job, const ChildResult& result) { return finish(*pending_[job], stamps_[job], result); });
  }

  /// The reports, and the baseline that is to be updated. Returns the worst status.
  Expected<int> sum_up(ReportFiles& reports) {
    BatchTotals totals;
    std::optional<Baseline> baseline;
    if (given_.update_baseline) {
      ATTN_OPT_TRY(baseline, Baseline::read_or_begin(given_.baseline));
    }
    for (const BatchInput& input : inputs_) {
      const ModelOutcome outcome = state_.outcome(input);
      totals.add(outcome);
      ATTN_OPT_CHECK(reports.add(outcome));
      if (outcome.status != 0) {
        say_error(outcome);
      } else if (baseline) {
        for (const std::string& text : baseline->accepted(outcome.report)) spdlog::warn("{}", text);
        baseline->update(outcome.report);
      } else if (const auto& held = given_.job.requirements.baseline) {
        for (const std::string& text : held->warnings(outcome.report)) spdlog::warn("{}", text);
      }
    }
    for (const ModelOutcome& gone : vanished_models()) {
      totals.add(gone);
      ATTN_OPT_CHECK(reports.add(gone));
      say_error(gone);
    }
    if (baseline) {
      const std::vector<std::string> vanished = vanished_from(*baseline);
      for (const std::string& model : vanished) spdlog::warn("{} is no longer there; {} drops it", model, given_.baseline);
      baseline->forget(vanished);
      ATTN_OPT_CHECK(baseline->write());
    }
    ATTN_OPT_CHECK(reports.finish());
    say(fmt::format("{}; {}\n", status_phrase(totals), results_phrase(totals, writes())));
    return totals.worst_status;
  }

  void say_to(std::FILE* stream) { stream_ = stream; }

 private:
  /// Of a model and of what was at its output, before it runs.
  struct Stamps {
    std::string model, output;
  };

  bool writes() const { return !given_.output.empty() && !given_.job.requirements.check; }
  fs::path output_of(const BatchInput& input) const { return fs::path(given_.output) / input.below_root; }

  /// Models of BASELINE that were in folders of this batch and are not.
  std::vector<std::string> vanished_from(const Baseline& baseline) const {
    std::vector<std::string> folders;
    std::vector<fs::path> models;
    std::error_code none;
    std::ranges::copy_if(given_.words, std::back_inserter(folders),
                         [&](const std::string& word) { return fs::is_directory(word, none); });
    for (const BatchInput& input : inputs_) models.push_back(input.path);
    return baseline.vanished(folders, models);
  }

  /// An entry in the reports for each model that the baseline to be held has and that is gone.
  std::vector<ModelOutcome> vanished_models() const {
    std::vector<ModelOutcome> models;
    const auto& baseline = given_.job.requirements.baseline;
    if (!baseline) return models;
    const Error gone{
        ErrorCode::kRequirement, {}, "is in " + given_.baseline + " and no longer there", "--update-baseline drops it"};
    for (const std::string& model : vanished_from(*baseline))
      models.push_back({valid_utf8(model), "", exit_status(gone.code), gone.message(), 0, nullptr});
    return models;
  }

  static void say_error(const ModelOutcome& outcome) {
    const std::string message = outcome.input + ": " + message_of(outcome);
    std::fputs((github_annotation(message) + painted_error_begin() + message + "\n").c_str(), stderr);
  }

  Status make_output_folder(const BatchInput& input) const {
    if (!writes()) return {};
    return make_folder(output_of(input).parent_path());
  }

  std::vector<std::string> arguments_for(const BatchInput& input) const {
    const std::string path = input.path.string();
    std::vector<std::string> arguments = {path.starts_with('-') ? "./" + path : path, "--progress=never", "--no-config",
                                          "--color=never", "--report=json:" + state_.report_path(input).string()};
    if (writes()) arguments.push_back("--output=" + output_of(input).string());
    arguments.insert(arguments.end(), words_.begin(), words_.end());
    return arguments;
  }

  /// A model that was ended between the writing of its output and its own end has none.
  void drop_output(const BatchInput& input, const Stamps& before) const {
    std::error_code none;
    if (!writes() || is_in_place(input) || stamp_of_model(output_of(input)) == before.output) return;
    fs::remove(output_of(input), none);
  }

  bool is_in_place(const BatchInput& input) const {
    std::error_code none;
    return writes() && fs::equivalent(output_of(input), input.path, none);
  }

  Status finish(const BatchInput& input, const Stamps& before, const ChildResult& result) {
    if (result.status != 0) drop_output(input, before);
    ModelOutcome outcome;
    outcome.status = result.status;
    outcome.message = valid_utf8(result.message);
    outcome.seconds = result.seconds;
    if (writes() && result.status == 0) outcome.output = valid_utf8(output_of(input).string());
    ATTN_OPT_CHECK(
        state_.enter(input, is_in_place(input) ? stamp_of_model(input.path) : before.model, output_of(input), outcome));
    const nlohmann::json report = state_.outcome(input).report;
    const std::string fused = report.is_null() ? ""
                                               : fmt::format("{} of {} fused", report["summary"]["fused"].get<int>(),
                                                             report["summary"]["sites"].get<int>());
    say(fmt::format("[{}/{}] {:<8} {:>16}  {:8.2f} s  {}\n", ++done_, inputs_.size(),
                    result.status == 0 ? "done" : fmt::format("status {}", result.status), fused, result.seconds,
                    input.path.string()));
    return {};
  }

  /// Errors begin with the model they are about: it is said once.
  static std::string message_of(const ModelOutcome& outcome) {
    const std::string begin = outcome.input + ": ";
    return outcome.message.starts_with(begin) ? outcome.message.substr(begin.size()) : outcome.message;
  }

  void say(const std::string& text) const {
    if (given_.job.verbosity.quiet) return;
    std::fputs(painted(text, stream_).c_str(), stream_);
    std::fflush(stream_);
  }

  const BatchArguments& given_;
  std::vector<BatchInput> inputs_;
  std::vector<std::string> words_;
  BatchState state_;
  std::vector<const BatchInput*> pending_;
  std::vector<Stamps> stamps_;
  size_t done_ = 0;
  std::FILE* stream_ = stdout;
};

/// What decides what becomes of a model: this version, the options, and the files that they name.
std::string fingerprint_of(const std::vector<std::string>& words, const BatchArguments& given) {
  std::string text = ATTN_OPT_VERSION " with drawings";  // of which reports of earlier builds have none
  for (const std::string& word : words) text += " " + word;
  std::vector<std::string> paths = given.job.optimize.patterns;
  if (!given.update_baseline && !given.baseline.empty()) paths.push_back(given.baseline);
  for (const std::string& path : paths) text += " " + stamp_of(path);
  return text;
}

Expected<int> run_batch(BatchArguments& given, const CLI::App& app) {
  set_up_log(given.job.verbosity);
  ATTN_OPT_CHECK(settle(given, app));
  ATTN_OPT_TRY(const OptimizeOptions valid, to_options(given.job.optimize));
  ATTN_OPT_TRY(auto inputs, batch_inputs(given.words, given.root, given.output));
  ATTN_OPT_TRY(ReportFiles reports, ReportFiles::create(given.reports, ReportScope::kMany));
  std::error_code none;
  if (fs::path(given.output).extension() == ".onnx" && !fs::is_directory(given.output, none))
    spdlog::warn("{}: becomes a folder, with a model in it for each input", given.output);
  TemporaryFolder temporary;
  fs::path folder = fs::path(given.output) / ".attn-opt";
  if (given.output.empty() || given.job.requirements.check) {
    ATTN_OPT_TRY(folder, temporary.make());
  }
  auto words = job_words(app, given.update_baseline);
  BatchState state(folder, fingerprint_of(words, given));
  Batch batch(given, std::move(inputs), std::move(words), std::move(state));
  if (reports.use_standard_output()) batch.say_to(stderr);
  ATTN_OPT_CHECK(batch.run());
  return batch.sum_up(reports);
}

}  // namespace

DeclaredCommand batch_command() {
  return declared("attn-opt batch", "Optimises many models, each in a process of its own.", declare, run_batch);
}

}  // namespace attn_opt
