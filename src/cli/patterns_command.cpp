#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "attn_opt/rules.h"
#include "src/cli/commands.h"

namespace attn_opt {
namespace {

struct PatternsArguments {
  std::string folder;
};

void declare(CLI::App& app, PatternsArguments& given) {
  app.add_option("--patterns", given.folder, "Folder of rules to list too");
}

Expected<int> list_patterns(PatternsArguments& given, const CLI::App&) {
  std::vector<const Pattern*> all;
  for (const auto& pattern : patterns()) all.push_back(pattern.get());
  std::vector<std::shared_ptr<const Pattern>> rules;
  if (!given.folder.empty()) {
    ATTN_OPT_TRY(rules, load_rules(given.folder));
  }
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
