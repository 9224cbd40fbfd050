#include <cstdio>
#include <sstream>

#include "src/cli/case_runner.h"
#include "src/cli/commands.h"

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
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

struct TestArguments {
  std::vector<std::string> paths;
  bool update_golden = false;
  Verbosity verbosity;
};

void declare(CLI::App& app, TestArguments& given) {
  app.add_option("PATH", given.paths, "Cases (.onnxtxt), or folders to search for them")->required();
  app.add_flag("--update-golden", given.update_golden, "Rewrite golden outputs that differ");
  declare_verbosity(app, given.verbosity);
}

Expected<int> test(TestArguments& given, const CLI::App&) {
  set_up_log(given.verbosity);
  ATTN_OPT_TRY(const auto cases, find_cases(given.paths));
  int failed = 0;
  for (const auto& path : cases) {
    const CaseResult result = run_case(path, given.update_golden);
    if (!result.failures.empty()) ++failed;
    print(result, path, given.verbosity);
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
