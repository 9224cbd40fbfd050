#include <chrono>
#include <cstdio>
#include <optional>
#include <sstream>

#include "src/cli/case_runner.h"
#include "src/cli/color.h"
#include "src/cli/commands.h"
#include "src/cli/report_files.h"
#include "src/report/junit_suite.h"
#include "src/verify/seconds.h"

namespace attn_opt {
namespace {

std::string indented(const std::string& text) {
  std::istringstream lines(text);
  std::string result;
  for (std::string line; std::getline(lines, line);) result += "  " + line + "\n";
  return result;
}

void print(const CaseResult& result, const std::filesystem::path& path, const Verbosity& verbosity) {
  if (verbosity.quiet) return;
  std::string text;
  if (!result.failures.empty()) {
    text = "FAIL " + result.name + " (" + path.string() + ")\n";
    for (const std::string& failure : result.failures) text += indented(failure);
  } else if (verbosity.verbose > 0) {
    text = "pass " + result.name + "\n";
  }
  if (result.golden_written) text += "wrote the golden file of " + result.name + "\n";
  std::fputs(painted(text, stdout).c_str(), stdout);
  std::fflush(stdout);
}

struct TestArguments {
  std::vector<std::string> paths;
  std::string report;
  bool update_golden = false;
  Verbosity verbosity;
};

void declare(CLI::App& app, TestArguments& given) {
  app.add_option("PATH", given.paths, "Cases (.onnxtxt), or folders to search for them")->required();
  app.add_flag("--update-golden", given.update_golden, "Rewrite golden outputs that differ");
  app.add_option("--report", given.report, "Write the results as JUnit XML, FILE.xml or junit:FILE");
  declare_verbosity(app, given.verbosity);
}

Expected<std::optional<OutputFile>> report_file(const std::string& word) {
  if (word.empty()) return std::nullopt;
  ATTN_OPT_TRY(const ReportTarget target, report_target(word));
  if (target.format != ReportFormat::kJunit)
    return fail(ErrorCode::kUsage, "--report", "results of tests are written as JUnit XML alone", "name it FILE.xml");
  ATTN_OPT_TRY(OutputFile file, OutputFile::create(target.path));
  return std::optional<OutputFile>(std::move(file));
}

Status write_report(OutputFile& file, const std::string& suite) {
  ATTN_OPT_CHECK(file.append(junit_begin() + suite + junit_end()));
  return file.replace_target();
}

void enter(const CaseResult& result, double seconds, JunitSuite& suite) {
  std::string failures;
  for (const std::string& failure : result.failures) failures += (failures.empty() ? "" : "; ") + failure;
  const std::string name = valid_utf8(result.name);
  if (failures.empty()) suite.pass(name, seconds);
  else suite.failure(name, seconds, "case", valid_utf8(failures));
}

Expected<int> test(TestArguments& given, const CLI::App&) {
  set_up_log(given.verbosity);
  ATTN_OPT_TRY(const auto cases, find_cases(given.paths));
  ATTN_OPT_TRY(auto report, report_file(given.report));
  JunitSuite suite("attn-opt test");
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  int failed = 0;
  for (const auto& path : cases) {
    const auto case_begin = Clock::now();
    const CaseResult result = run_case(path, given.update_golden);
    if (!result.failures.empty()) ++failed;
    enter(result, seconds_since(case_begin), suite);
    print(result, path, given.verbosity);
  }
  if (report) {
    ATTN_OPT_CHECK(write_report(*report, suite.xml(seconds_since(begin))));
  }
  const int passed = static_cast<int>(cases.size()) - failed;
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : exit_status(ErrorCode::kRequirement);
}

}  // namespace

DeclaredCommand test_command() {
  return declared("attn-opt test",
                  "Runs pattern regression cases: models in ONNX's textual syntax that say what is to become of them.",
                  declare, test);
}

}  // namespace attn_opt
