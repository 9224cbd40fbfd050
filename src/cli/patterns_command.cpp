#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "attn_opt/rules.h"
#include "src/cli/commands.h"
#include "src/cli/optimize_arguments.h"

namespace attn_opt {
namespace {

struct PatternsArguments {
  std::vector<std::string> folders;
};

void declare(CLI::App& app, PatternsArguments& given) {
  declare_rule_folders(app, given.folders);
}

Expected<int> list_patterns(PatternsArguments& given, const CLI::App&) {
  std::vector<const Pattern*> all;
  for (const auto& pattern : patterns()) all.push_back(pattern.get());
  ATTN_OPT_TRY(const auto rules, load_rules(given.folders));
  for (const auto& rule : rules) all.push_back(rule.get());
  size_t width = 0;
  for (const Pattern* pattern : all) width = std::max(width, pattern->name().size());
  for (const Pattern* pattern : all) {
    std::fputs(fmt::format("{:{}}  {}\n", pattern->name(), width, pattern->summary()).c_str(), stdout);
  }
  return 0;
}

}  // namespace

DeclaredCommand patterns_command() {
  return declared("attn-opt patterns", "Lists the patterns: the names that --only and --disable take.", declare,
                  list_patterns);
}

}  // namespace attn_opt
