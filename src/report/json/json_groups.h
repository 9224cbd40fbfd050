// Sites that are drawn alike share a group, which has the drawing once.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "attn_opt/report.h"

namespace attn_opt {

class SiteGroups {
 public:
  /// The number of SITE's group: of those before that differ from it in names and symbolic sizes alone, or a new one. Called
  /// for each site in turn.
  size_t group_of(const SiteReport& site);
  /// {"sites", "before", "after"} of each; the graphs are those of its first site.
  const nlohmann::json& list() const { return list_; }

 private:
  std::map<std::string, size_t> numbers_;
  nlohmann::json list_ = nlohmann::json::array();
  int sites_ = 0;
};

/// Names of the tensors of SITE that have a role, by role: {"Q": ["q"], "mask": ["causal", "padding"]}.
nlohmann::json tensors_by_role(const SiteReport& site);
/// Names of the nodes, in the order of the group's; null if there is no graph.
nlohmann::json node_names(const std::optional<SiteGraph>& graph);

}  // namespace attn_opt
