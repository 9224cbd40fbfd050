#include "src/cli/trace_log.h"

#include <spdlog/spdlog.h>

#include "src/graph/operator_name.h"

namespace attn_opt {

decltype(OptimizeOptions::trace) trace_to_log(const Verbosity& verbosity) {
  if (verbosity.verbose < 2) return {};
  return [](std::string_view pattern, const Node& node, const Miss& miss) {
    const std::string where = miss.node && miss.node != &node ? " at " + miss.node->label() : "";
    spdlog::debug("{} ({}): [{}] {}{}{}", node.label(), operator_name(node), pattern, miss.id, where,
                  miss.found.empty() ? "" : ": " + miss.found);
  };
}

}  // namespace attn_opt
