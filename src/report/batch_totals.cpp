#include "src/report/batch_totals.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "src/report/assumption_counts.h"

namespace attn_opt {
namespace {

/// What models of each exit status are (docs/cli.md).
constexpr std::array<std::string_view, 6> kStatusWords = {"done",         "unmet requirement", "wrong usage",
                                                          "not readable", "numbers differ",    "not writable"};

}  // namespace

void BatchTotals::add(const ModelOutcome& model) {
  ++models;
  ++by_status[model.status];
  worst_status = std::max(worst_status, model.status);
  if (model.report.is_null()) return;
  const auto& summary = model.report.at("summary");
  sites += summary.at("sites").get<int>();
  fused += summary.at("fused").get<int>();
  refused += summary.at("refused").get<int>();
  missed += summary.at("missed").get<int>();
  const auto rewrites_of_it = model.report.value("rewrites", nlohmann::json::array());
  rewrites += static_cast<int>(rewrites_of_it.size());
  rewritten += summary.value("rewritten", 0);
  // A report of an earlier run may be older than these counts.
  refined += summary.value("refined", 0);
  unverified += summary.value("unverified", 0);
  const nlohmann::json sites_by_id = summary.value("assumed", nlohmann::json::object());
  for (const auto& [id, count] : sites_by_id.items()) assumed[id] += count.get<int>();
  for (const auto& site : model.report.at("sites"))
    if (!site.at("miss").is_null()) ++misses[site.at("miss").at("id").get<std::string>()];
}

nlohmann::json to_json(const BatchTotals& totals) {
  nlohmann::json by_status = nlohmann::json::object(), misses = nlohmann::json::object();
  for (const auto& [status, count] : totals.by_status) by_status[std::to_string(status)] = count;
  for (const auto& [id, count] : totals.misses) misses[id] = count;
  return {{"status", totals.worst_status},   {"models", totals.models},     {"by_status", std::move(by_status)},
          {"sites", totals.sites},           {"fused", totals.fused},       {"refused", totals.refused},
          {"missed", totals.missed},         {"assumed", totals.assumed},   {"refined", totals.refined},
          {"unverified", totals.unverified}, {"misses", std::move(misses)}, {"rewrites", totals.rewrites},
          {"rewritten", totals.rewritten}};
}

std::string results_phrase(const BatchTotals& totals, bool written) {
  const std::string verb = written ? "" : "can be ";
  std::string sites = fmt::format("{} of {} attention sites {}fused", totals.fused, totals.sites, verb);
  if (totals.rewrites == 0) return sites;
  const std::string rewrites =
      fmt::format("{} of {} rewrite{} {}applied", totals.rewritten, totals.rewrites, totals.rewrites == 1 ? "" : "s", verb);
  return totals.sites == 0 ? rewrites : sites + ", " + rewrites;
}

std::string assurance_phrase(const BatchTotals& totals) {
  return assurance_phrase(totals.fused, {{totals.assumed.begin(), totals.assumed.end()}, totals.refined, totals.unverified});
}

std::string status_phrase(const BatchTotals& totals) {
  std::string text = fmt::format("{} model{}", totals.models, totals.models == 1 ? "" : "s");
  std::string_view separator = ": ";
  for (const auto& [status, count] : totals.by_status) {
    const auto known = static_cast<size_t>(status);
    text += fmt::format("{}{} {}", separator, count,
                        known < kStatusWords.size() ? kStatusWords[known] : std::string_view("unexpected"));
    separator = ", ";
  }
  return text;
}

}  // namespace attn_opt
