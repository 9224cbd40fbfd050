#include "src/cli/baseline.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <set>

#include "src/io/output_file.h"
#include "src/report/report_stream.h"

namespace attn_opt {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

/// "module" of a site; empty in a baseline of before modules were known, and where the exporter wrote none.
std::string module_of(const json& site) {
  const json module = site.value("module", json());
  return module.is_string() ? module.get<std::string>() : "";
}

bool is_fused(const json& site) { return site.at("outcome") == "fused"; }

/// {"graph", "name", "module" if there is one} of each fused site of a report.
json fused_sites(const json& report) {
  json sites = json::array();
  for (const json& site : report.at("sites")) {
    if (!is_fused(site)) continue;
    sites.push_back({{"graph", site.at("graph")}, {"name", site.at("name")}});
    if (const std::string module = module_of(site); !module.empty()) sites.back()["module"] = module;
  }
  return sites;
}

/// How sure it is that SITE, of a report, is the one KNOWN: 0, that it is not. Modules count more than names, in which exporters
/// count nodes; in one module a name or a fusion tells sites apart.
int likeness(const json& known, const json& site) {
  if (known.at("graph") != site.at("graph")) return 0;
  const bool same_name = known.at("name") == site.at("name");
  const std::string was = module_of(known), is = module_of(site);
  if (was.empty() || is.empty()) return same_name ? 3 : 0;
  if (was != is) return 0;
  return same_name ? 3 : is_fused(site) ? 2 : 1;
}

/// What sites that may be the same have in common: a name or a module.
std::array<std::string, 2> keys_of(const json& site) {
  return {"name " + site.at("name").get<std::string>(), "module " + module_of(site)};
}

/// For each of the sites KNOWN the one of SITES that it is now, each of which is taken once; null: none.
std::vector<const json*> counterparts(const json& known, const json& sites) {
  std::map<std::string, std::vector<const json*>> by_key;
  for (const json& site : sites)
    for (const std::string& key : keys_of(site)) by_key[key].push_back(&site);
  std::vector<const json*> now(known.size(), nullptr);
  std::set<const json*> taken;
  for (const int wanted : {3, 2, 1})
    for (size_t i = 0; i < known.size(); ++i)
      for (const std::string& key : keys_of(known[i]))
        for (const json* site : by_key[key])
          if (now[i] == nullptr && likeness(known[i], *site) == wanted && taken.insert(site).second) now[i] = site;
  return now;
}

/// What became of the sites KNOWN to have been fused: a phrase for each that is not.
std::vector<std::string> lost_sites(const json& known, const json& report) {
  const json& sites = report.at("sites");
  const std::vector<const json*> now = counterparts(known, sites);
  std::vector<std::string> lost, gone;
  auto fresh = std::ranges::count_if(sites, is_fused);
  for (size_t i = 0; i < known.size(); ++i) {
    const std::string name = "'" + known[i].at("name").get<std::string>() + "'";
    if (now[i] == nullptr) gone.push_back(name + " (no longer there)");
    else if (is_fused(*now[i])) --fresh;
    else {
      const json& miss = now[i]->at("miss");
      lost.push_back(name + " (" + (miss.is_null() ? "its numbers differ" : miss.at("id").get<std::string>()) + ")");
    }
  }
  if (std::ssize(gone) > fresh) lost.insert(lost.end(), gone.begin() + fresh, gone.end());
  return lost;
}

/// Is LIST one of sites?
bool holds_sites(const json& list) {
  return list.is_array() && std::ranges::all_of(list, [](const json& site) {
           return site.is_object() && site.contains("graph") && site["graph"].is_string() && site.contains("name") &&
                  site["name"].is_string();
         });
}

bool is_baseline(const json& document) {
  if (!document.is_object() || document.value("schema_version", json()) != 1) return false;
  const json models = document.value("models", json());
  return models.is_object() && std::ranges::all_of(models, [](const json& model) {
           return model.is_object() && holds_sites(model.value("fused", json()));
         });
}

bool is_report(const json& document) {
  return document.is_object() && document.contains("sites") && holds_sites(document["sites"]) &&
         std::ranges::all_of(document["sites"], [](const json& site) { return site.contains("outcome"); });
}

}  // namespace

Expected<Baseline> Baseline::read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(ErrorCode::kInvalidInput, path.string(), "cannot be read", "--update-baseline writes it");
  const json document = json::parse(file, nullptr, false);
  Baseline baseline(path);
  if (is_baseline(document)) baseline.models_ = document.at("models");
  else if (is_report(document)) baseline.any_model_ = fused_sites(document);
  else return fail(ErrorCode::kInvalidInput, path.string(), "is no baseline", "--update-baseline writes one");
  return baseline;
}

Expected<Baseline> Baseline::read_or_begin(const fs::path& path) {
  std::error_code none;
  if (!fs::exists(path, none)) return Baseline(path);
  return read(path);
}

Status Baseline::check(const json& report) const {
  const std::string model = report.at("input").get<std::string>();
  if (!knows(model)) {
    spdlog::warn("{} is not in {}: nothing to hold it against; --update-baseline enters it", model, path_.string());
    return {};
  }
  const auto lost = lost_sites(any_model_.is_null() ? models_.at(key_of(model)).at("fused") : any_model_, report);
  if (lost.empty()) return {};
  constexpr size_t kMostNamed = 5;
  std::string names;
  for (size_t i = 0; i < std::min(lost.size(), kMostNamed); ++i) names += (i == 0 ? "" : ", ") + lost[i];
  if (lost.size() > kMostNamed) names += ", ...";
  return fail(ErrorCode::kRequirement, model,
              fmt::format("lost {} of the fused attention sites in {}: {}", lost.size(), path_.string(), names),
              "--update-baseline accepts that");
}

void Baseline::update(const json& report) {
  if (!any_model_.is_null()) any_model_ = json();
  models_[key_of(report.at("input").get<std::string>())] = {{"fused", fused_sites(report)}};
}

Status Baseline::write() const {
  ATTN_OPT_TRY(OutputFile file, OutputFile::create(path_));
  ATTN_OPT_CHECK(file.append(json({{"schema_version", 1}, {"models", models_}}).dump(2) + "\n"));
  return file.replace_target();
}

std::string Baseline::key_of(const std::string& model) const {
  std::error_code none;
  const fs::path folder = fs::weakly_canonical(folder_of(path_), none), whole = fs::weakly_canonical(model, none);
  return model == "-" ? model : valid_utf8(whole.lexically_relative(folder).generic_string());
}

}  // namespace attn_opt
