#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "attn_opt/pattern.h"
#include "attn_opt/rules.h"
#include "src/cli/commands/commands.h"
#include "src/cli/options/optimize_arguments.h"

namespace attn_opt {
namespace {

struct PatternsArguments {
  std::vector<std::string> folders;
};

void declare(CLI::App& app, PatternsArguments& given) { declare_rule_folders(app, given.folders); }

Expected<int> list_patterns(PatternsArguments& given, const CLI::App&) {
  std::vector<std::pair<std::string_view, std::string>> all;
  const auto add = [&all](const auto& list, const std::string& note) {
    for (const auto& one : list) all.emplace_back(one->name(), std::string(one->summary()) + note);
  };
  ATTN_OPT_TRY(const Rules rules, load_rules(given.folders));
  add(patterns(), "");
  add(rewrites(), " (rewrite, with --also)");
  add(rules.patterns, "");
  add(rules.rewrites, " (rewrite)");
  size_t width = 0;
  for (const auto& [name, summary] : all) width = std::max(width, name.size());
  for (const auto& [name, summary] : all) std::fputs(fmt::format("{:{}}  {}\n", name, width, summary).c_str(), stdout);
  return 0;
}

}  // namespace

DeclaredCommand patterns_command() {
  return declared("attn-opt patterns", "Lists the patterns and rewrites: the names that --only, --disable and --also take.",
                  declare, list_patterns);
}

}  // namespace attn_opt
