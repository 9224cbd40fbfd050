// The options that say how a model is optimised: of the main job, of explain, and of RUN lines in cases.
#pragma once

#include <string>
#include <vector>

#include "attn_opt/optimizer.h"
#include "src/cli/options/arguments.h"

namespace attn_opt {

struct OptimizeArguments {
  std::string opset;  ///< a number or "keep"; empty: what the target has by default
  std::vector<std::string> only, disable;
  std::vector<std::string> also, priorities;                       ///< of rewrites: names, and NAME=N
  std::vector<std::string> patterns;                               ///< folders of rules
  std::vector<std::shared_ptr<const Pattern>> more_patterns = {};  ///< beside those of the command and of the folders
  std::vector<std::shared_ptr<const Rewrite>> more_rewrites = {};  ///< beside those of the command and of the folders
  std::string target = "portable", form = "auto", stage = "attention", verify = "sites", kv_cache = "growing";
  std::vector<std::string> assume;  ///< ids, or the word "none"
  bool strict = false, exact = false, allow_unverified = false;
  int stop_after = -1;
};

void declare_optimize_options(CLI::App& app, OptimizeArguments& arguments);
/// --rules, which lists and tests of patterns have too.
void declare_rule_folders(CLI::App& app, std::vector<std::string>& folders);

/// The options that ARGUMENTS differ from the defaults in, as a RUN line of a case has them.
std::string to_words(const OptimizeArguments& arguments);

/// Error: kUsage (a pattern, opset or target that there is not).
Expected<OptimizeOptions> to_options(const OptimizeArguments& arguments);

}  // namespace attn_opt
