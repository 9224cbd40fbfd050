#include <chrono>
#include <cstdio>
#include <optional>

#include "attn_opt/rules.h"
#include "src/cli/cases/case_runner.h"
#include "src/cli/color.h"
#include "src/cli/commands/commands.h"
#include "src/cli/options/optimize_arguments.h"
#include "src/cli/report_files.h"
#include "src/report/junit_suite.h"
#include "src/verify/seconds.h"

namespace attn_opt {
namespace {

void print(const CaseResult& result, const Verbosity& verbosity) {
  if (verbosity.quiet) return;
  std::fputs(painted(text_of(result, verbosity.verbose > 0), stdout).c_str(), stdout);
  std::fflush(stdout);
}

struct TestArguments {
  std::vector<std::string> paths;
  std::string report;
  CaseSettings cases;
  Verbosity verbosity;
};

void declare(CLI::App& app, TestArguments& given) {
  app.add_option("PATH", given.paths, "Cases (.onnxtxt), or folders to search for them")->required();
  app.add_flag("--update-golden", given.cases.update_golden, "Rewrite golden outputs that differ");
  declare_rule_folders(app, given.cases.patterns.rules);
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

void enter(const CaseResult& result, JunitSuite& suite) {
  std::string failures;
  for (const std::string& failure : result.failures) failures += (failures.empty() ? "" : "; ") + failure;
  const std::string name = valid_utf8(result.name);
  if (failures.empty())
    suite.pass(name, result.seconds);
  else
    suite.failure(name, result.seconds, "case", valid_utf8(failures));
}

Expected<int> test(TestArguments& given, const CLI::App&) {
  set_up_log(given.verbosity);
  ATTN_OPT_TRY(const auto cases, find_cases(given.paths));
  ATTN_OPT_TRY(auto report, report_file(given.report));
  JunitSuite suite("attn-opt test");
  ATTN_OPT_TRY(const auto rules, load_rules(given.cases.patterns.rules));  // said once, and not for each case
  const auto begin = std::chrono::steady_clock::now();
  size_t failed = 0;
  for (const auto& path : cases) {
    const CaseResult result = run_case(path, given.cases);
    failed += !result.failures.empty();
    enter(result, suite);
    print(result, given.verbosity);
  }
  if (report) {
    ATTN_OPT_CHECK(write_report(*report, suite.xml(seconds_since(begin))));
  }
  std::puts(summary_of(cases.size(), failed).c_str());
  return failed == 0 ? 0 : exit_status(ErrorCode::kRequirement);
}

}  // namespace

DeclaredCommand test_command() {
  return declared("attn-opt test",
                  "Runs pattern regression cases: models in ONNX's textual syntax that say what is to become of them.", declare,
                  test);
}

}  // namespace attn_opt
