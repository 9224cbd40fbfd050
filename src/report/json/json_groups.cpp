#include "src/report/json/json_groups.h"

#include <algorithm>
#include <cctype>

#include "src/report/json/json_values.h"
#include "src/report/names.h"

namespace attn_opt {
namespace {

using nlohmann::json;

json shape(const std::optional<std::vector<std::string>>& sizes) { return sizes ? texts(*sizes) : json(); }

json tensor(const SiteGraph::Tensor& one) {
  return {{"name", text(one.name)},
          {"type", text_or_null(one.type)},
          {"shape", shape(one.shape)},
          {"role", text_or_null(one.role)},
          {"number", one.number ? number(*one.number) : json()},
          {"from", one.from < 0 ? json() : json(one.from)},
          {"to", one.to}};
}

json node(const SiteGraph::Node& one) {
  json attributes = json::object();
  for (const auto& [name, value] : one.attributes) attributes[text(name).get<std::string>()] = text(value);
  return {{"name", text(one.name)}, {"op", text(one.op)}, {"role", name_of(one.role)}, {"attributes", std::move(attributes)}};
}

json graph_object(const std::optional<SiteGraph>& graph) {
  if (!graph) return {};
  json nodes = json::array(), tensors = json::array();
  for (const auto& one : graph->nodes) nodes.push_back(node(one));
  for (const auto& one : graph->tensors) tensors.push_back(tensor(one));
  return {{"nodes", std::move(nodes)}, {"tensors", std::move(tensors)}, {"is_cut", graph->is_cut}};
}

bool is_number(const std::string& size) {
  return std::ranges::all_of(size, [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// GRAPH without names and symbols.
json form_of(json graph) {
  if (graph.is_null()) return graph;
  for (json& one : graph["nodes"]) one.erase("name");
  for (json& one : graph["tensors"]) {
    one.erase("name");
    for (json& size : one["shape"])
      if (!is_number(size.get<std::string>())) size = "";
  }
  return graph;
}

/// What equal sites have in common.
std::string key_of(const SiteReport& site, const json& before, const json& after) {
  json conditions = json::array();
  for (const Precondition& one : site.preconditions) conditions.push_back({one.id, state_of(one)});
  const json key = {form_of(before),
                    form_of(after),
                    name_of(site.outcome),
                    site.op,
                    text(site.form),
                    site.q_heads,
                    site.kv_heads,
                    site.is_causal,
                    number(site.scale),
                    number(site.softcap),
                    texts(site.peeled),
                    text(site.miss_id),
                    site.verification ? name_of(site.verification->verdict) : "",
                    std::move(conditions)};
  return key.dump();
}

void enter_roles(const std::optional<SiteGraph>& graph, json& roles) {
  if (!graph) return;
  for (const SiteGraph::Tensor& one : graph->tensors) {
    if (one.role.empty()) continue;
    json& names = roles[one.role];
    const json name = text(one.name);
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
}

}  // namespace

size_t SiteGroups::group_of(const SiteReport& site) {
  json before = graph_object(site.before), after = graph_object(site.after);
  const auto [group, is_new] = numbers_.emplace(key_of(site, before, after), list_.size());
  if (is_new) list_.push_back({{"sites", json::array()}, {"before", std::move(before)}, {"after", std::move(after)}});
  list_[group->second]["sites"].push_back(sites_++);
  return group->second;
}

json tensors_by_role(const SiteReport& site) {
  json roles = json::object();
  enter_roles(site.before, roles);
  if (roles.empty()) enter_roles(site.after, roles);
  return roles;
}

json node_names(const std::optional<SiteGraph>& graph) {
  if (!graph) return {};
  json names = json::array();
  for (const auto& one : graph->nodes) names.push_back(text(one.name));
  return names;
}

}  // namespace attn_opt
