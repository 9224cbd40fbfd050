#include "src/cli/annotation.h"

#include <cstdlib>
#include <string_view>

namespace attn_opt {

std::string github_annotation(const std::string& message) {
  const char* runner = std::getenv("GITHUB_ACTIONS");
  if (runner == nullptr || std::string_view(runner) != "true") return {};
  std::string line = "::error title=attn-opt::";
  for (const char c : message) {
    if (c == '%')
      line += "%25";
    else if (c == '\n')
      line += "%0A";
    else if (c == '\r')
      line += "%0D";
    else
      line += c;
  }
  return line + "\n";
}

}  // namespace attn_opt
