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

}  // namespace

Expected<int> test_command(const Arguments& arguments) {
  std::vector<std::string> paths;
  bool update_golden = false;
  Verbosity verbosity;
  CLI::App app(
      "Runs pattern regression cases: models in ONNX's textual syntax that say what is to become of them.",
      "attn-opt test");
  app.add_option("PATH", paths, "Cases (.onnxtxt), or folders to search for them")->required();
  app.add_flag("--update-golden", update_golden, "Rewrite golden outputs that differ");
  declare_verbosity(app, verbosity);
  ATTN_OPT_TRY(const bool go_on, parse(app, arguments));
  if (!go_on) return 0;
  set_up_log(verbosity);
  ATTN_OPT_TRY(const auto cases, find_cases(paths));
  int failed = 0;
  for (const auto& path : cases) {
    const CaseResult result = run_case(path, update_golden);
    if (!result.failures.empty()) ++failed;
    print(result, path, verbosity);
  }
  const int passed = static_cast<int>(cases.size()) - failed;
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : exit_status(ErrorCode::kRequirement);
}

}  // namespace attn_opt
