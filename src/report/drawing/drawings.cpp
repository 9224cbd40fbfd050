#include "src/report/drawing/drawings.h"

#include <fmt/format.h>

#include "src/report/findings.h"

namespace attn_opt {
namespace {

using nlohmann::json;

std::string name_of(const json& report, const json& group) {
  const json& sites = group.at("sites");
  std::string name = qualified_name(report.at("sites").at(sites.at(0).get<size_t>()));
  if (sites.size() == 1) return name;
  return fmt::format("{} and {} equal site{}", name, sites.size() - 1, sites.size() == 2 ? "" : "s");
}

}  // namespace

void for_each_drawing(const json& report, const std::function<void(const GroupDrawing& drawing)>& draw) {
  const json& groups = report.at("groups");
  for (size_t i = 0; i < groups.size(); ++i) {
    for (const char* side : {"before", "after"}) {
      const json& graph = groups[i].at(side);
      if (graph.is_null() || graph.at("nodes").empty()) continue;
      draw({i, side, name_of(report, groups[i]), !groups[i].at("after").is_null(), &graph});
    }
  }
}

}  // namespace attn_opt
