#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "attn_opt/pattern.h"
#include "src/cli/commands.h"

namespace attn_opt {

Expected<int> patterns_command(const Arguments& arguments) {
  CLI::App app("Lists the patterns: the names that --only and --disable take.", "attn-opt patterns");
  ATTN_OPT_TRY(const bool go_on, parse(app, arguments));
  if (!go_on) return 0;
  size_t width = 0;
  for (const auto& pattern : patterns()) width = std::max(width, pattern->name().size());
  for (const auto& pattern : patterns()) {
    std::fputs(fmt::format("{:{}}  {}\n", pattern->name(), width, pattern->summary()).c_str(), stdout);
  }
  return 0;
}

}  // namespace attn_opt
