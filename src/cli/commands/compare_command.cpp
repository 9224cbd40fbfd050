#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "src/cli/commands/commands.h"
#include "src/cli/commands/model_comparison.h"

namespace attn_opt {
namespace {

struct CompareArguments {
  std::string a, b;
  int seeds = 3;
  TrialArguments trial;
  Verbosity verbosity;
};

/// "no NaN", "same NaN pattern", "NaN pattern differs".
std::string pattern_of(const char* kind, int64_t expected, int64_t elsewhere) {
  if (elsewhere > 0) return fmt::format("{} pattern differs", kind);
  return expected > 0 ? fmt::format("same {} pattern", kind) : fmt::format("no {}", kind);
}

std::string line_of(const std::string& output, const TensorDifference& found) {
  return fmt::format("{}  {}: {}, {}, {}\n", output, found.agrees() ? "agrees" : "differs", to_string(found),
                     pattern_of("NaN", found.nans_expected, found.nans_elsewhere),
                     pattern_of("Inf", found.infinities_expected, found.infinities_elsewhere));
}

void declare(CLI::App& app, CompareArguments& given) {
  app.add_option("A", given.a, "Model whose inputs are drawn and whose outputs are expected")->required();
  app.add_option("B", given.b, "Model that is compared with it")->required();
  app.add_option("--seeds", given.seeds, "How many draws with each combination of sizes")
      ->check(CLI::Range(1, std::numeric_limits<int>::max()))
      ->capture_default_str();
  declare_trial_options(app, given.trial);
  declare_verbosity(app, given.verbosity);
}

Expected<int> compare(CompareArguments& given, const CLI::App&) {
  set_up_log(given.verbosity);
  ATTN_OPT_TRY(const RunnableModel a, load_runnable(given.a, given.trial));
  ATTN_OPT_TRY(const RunnableModel b, load_runnable(given.b, given.trial));
  ATTN_OPT_TRY(const auto outputs, compare_models({a, given.a}, {b, given.b}, given.seeds, given.trial));
  for (size_t i = 0; i < outputs.size() && !given.verbosity.quiet; ++i) {
    std::fputs(line_of(outputs[i].name, outputs[i].difference).c_str(), stdout);
  }
  if (std::ranges::all_of(outputs, [](const OutputDifference& output) { return output.difference.agrees(); })) return 0;
  return fail(ErrorCode::kMismatch, given.b, "outputs differ from those of " + given.a);
}

}  // namespace

DeclaredCommand compare_command() {
  return declared("attn-opt compare", "Runs two models on the same drawn inputs and compares their outputs.", declare, compare);
}

}  // namespace attn_opt
