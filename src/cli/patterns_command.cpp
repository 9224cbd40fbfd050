#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "attn_opt/rules.h"
#include "src/cli/commands.h"

namespace attn_opt {

Expected<int> patterns_command(const Arguments& arguments) {
  std::string folder;
  CLI::App app("Lists the patterns: the names that --only and --disable take.", "attn-opt patterns");
  app.add_option("--patterns", folder, "Folder of rules to list too");
  ATTN_OPT_TRY(const bool go_on, parse(app, arguments));
  if (!go_on) return 0;
  std::vector<const Pattern*> all;
  for (const auto& pattern : patterns()) all.push_back(pattern.get());
  std::vector<std::shared_ptr<const Pattern>> rules;
  if (!folder.empty()) {
    ATTN_OPT_TRY(rules, load_rules(folder));
  }
  for (const auto& rule : rules) all.push_back(rule.get());
  size_t width = 0;
  for (const Pattern* pattern : all) width = std::max(width, pattern->name().size());
  for (const Pattern* pattern : all) {
    std::fputs(fmt::format("{:{}}  {}\n", pattern->name(), width, pattern->summary()).c_str(), stdout);
  }
  return 0;
}

}  // namespace attn_opt
