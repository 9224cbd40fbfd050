#include "src/cli/baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "src/cli/rewrite_counts.h"
#include "src/cli/text_file.h"
#include "src/io/output_file.h"
#include "src/report/findings.h"
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

bool is_left(const json& site) { return !is_fused(site); }

/// {"graph", "name", "module" if there is one} of each site of a report that is WANTED.
json sites_that(bool (*wanted)(const json&), const json& report) {
  json sites = json::array();
  for (const json& site : report.at("sites")) {
    if (!wanted(site)) continue;
    sites.push_back({{"graph", site.at("graph")}, {"name", site.at("name")}});
    if (const std::string module = module_of(site); !module.empty()) sites.back()["module"] = module;
  }
  return sites;
}

/// What is known of a model whose REPORT this is: the fused sites, those that were not, and how often rewrites were applied.
json entry_of(const json& report) {
  json entry = {{"fused", sites_that(is_fused, report)}, {"missed", sites_that(is_left, report)}};
  if (json counts = rewrite_counts(report); !counts.empty()) entry["rewritten"] = std::move(counts);
  return entry;
}

/// How sure it is that SITE, of a report, is the one KNOWN: 0, that it is not. Modules count more than names, in which
/// exporters count nodes; in one module a name or a fusion tells sites apart.
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

/// For each of the sites KNOWN the one of SITES that it is now, none of those TAKEN, to which it is added; null: none.
std::vector<const json*> counterparts(const json& known, const json& sites, std::set<const json*>& taken) {
  std::map<std::string, std::vector<const json*>> by_key;
  for (const json& site : sites)
    for (const std::string& key : keys_of(site)) by_key[key].push_back(&site);
  std::vector<const json*> now(known.size(), nullptr);
  for (const int wanted : {3, 2, 1})
    for (size_t i = 0; i < known.size(); ++i)
      for (const std::string& key : keys_of(known[i]))
        for (const json* site : by_key[key])
          if (now[i] == nullptr && likeness(known[i], *site) == wanted && taken.insert(site).second) now[i] = site;
  return now;
}

/// A site that was fused and is not.
struct LostSite {
  const json* known;  ///< in the baseline
  const json* now;    ///< in the report, maybe by another name; null: it is no longer there
};

/// What became of the sites of a baseline.
struct Changes {
  std::vector<LostSite> lost;
  std::vector<const json*> unknown;     ///< not fused, and not in the baseline by any name
  std::vector<const json*> maybe_lost;  ///< such that may be one that is gone: the baseline is of before those were known
};

/// The sites of SITES that are not fused, none of those TAKEN, and that KNOWN does not have: as many may have another name as
/// are gone.
std::vector<const json*> unknown_sites(const json& known, const json& sites, std::set<const json*>& taken) {
  std::vector<const json*> unknown;
  for (const json& site : sites)
    if (is_fused(site)) taken.insert(&site);
  const auto renamed = std::ranges::count(counterparts(known, sites, taken), nullptr);
  for (const json& site : sites)
    if (!taken.contains(&site)) unknown.push_back(&site);
  unknown.erase(unknown.begin(), unknown.begin() + std::min(renamed, std::ssize(unknown)));
  return unknown;
}

/// KNOWN: what a baseline has of a model. A site that is gone is one of another name: a fused one, unless that leaves one that
/// is not fused and that the baseline does not have.
Changes changes_since(const json& known, const json& report) {
  const json &sites = report.at("sites"), &fused = known.at("fused");
  std::set<const json*> taken;
  const std::vector<const json*> now = counterparts(fused, sites, taken);
  Changes changes;
  std::vector<const json*> gone;
  auto fresh = std::ranges::count_if(sites, is_fused);
  for (size_t i = 0; i < fused.size(); ++i) {
    if (now[i] == nullptr)
      gone.push_back(&fused[i]);
    else if (is_fused(*now[i]))
      --fresh;
    else
      changes.lost.push_back({&fused[i], now[i]});
  }
  auto& unknown = changes.unknown = unknown_sites(known.value("missed", json::array()), sites, taken);
  const bool tells_unknown = known.contains("missed");
  for (const json* site : gone) {
    const bool is_left_now = tells_unknown && !unknown.empty();
    if (!is_left_now && fresh-- > 0) continue;
    changes.lost.push_back({site, is_left_now ? unknown.front() : nullptr});
    if (is_left_now) unknown.erase(unknown.begin());
  }
  if (!tells_unknown && std::ssize(gone) > 0) changes.maybe_lost = unknown;
  if (!tells_unknown) unknown.clear();
  return changes;
}

/// How often rewrites were applied to a model of which KNOWN is told.
json rewrites_of(const json& known) { return known.value("rewritten", json::object()); }

/// "b.5 (model.py:10) is no longer fused: Elu between ...".
std::string phrase_of(const LostSite& site) {
  const std::string module = module_of(*site.known), name = site.known->at("name").get<std::string>();
  const std::string was = module.empty() ? name : module;
  if (site.now == nullptr) return was + " is no longer there";
  const bool is_renamed = likeness(*site.known, *site.now) == 0;
  return (is_renamed ? was + " is no longer there, and " : "") + title_of(*site.now) +
         (is_renamed ? ", which is new, is not fused: " : " is no longer fused: ") + reason_of(*site.now);
}

/// The attentions LOST, and the rewrites of FEWER sentences; not both are empty.
tl::unexpected<Error> loss(const std::vector<LostSite>& lost, const std::vector<std::string>& fewer, const std::string& model,
                           const std::string& baseline) {
  constexpr size_t kMostNamed = 5;
  std::string what, run;
  if (lost.size() == 1) what = "attention ";
  if (lost.size() > 1) what = fmt::format("lost {} of the attentions in {}: ", lost.size(), baseline);
  for (size_t i = 0; i < std::min(lost.size(), kMostNamed); ++i) what += (i == 0 ? "" : "; ") + phrase_of(lost[i]);
  if (lost.size() > kMostNamed) what += "; ...";
  for (const std::string& text : fewer) what += (what.empty() ? "" : "; ") + text;
  const json* first = lost.empty() ? nullptr : lost.front().now;
  if (first) run = "run: " + explain_command(model, *first) + "; ";
  return fail(ErrorCode::kRequirement, model, what, run + "--update-baseline accepts that");
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
           return model.is_object() && holds_sites(model.value("fused", json())) &&
                  holds_sites(model.value("missed", json::array())) &&
                  are_rewrite_counts(model.value("rewritten", json::object()));
         });
}

bool is_report(const json& document) {
  return document.is_object() && document.contains("sites") && holds_sites(document["sites"]) && holds_rewrites(document) &&
         std::ranges::all_of(document["sites"], [](const json& site) { return site.contains("outcome"); });
}

}  // namespace

Expected<Baseline> Baseline::read(const fs::path& path) {
  ATTN_OPT_TRY(const std::string text, read_text(path, "--update-baseline writes it"));
  const json document = json::parse(text, nullptr, false);
  Baseline baseline(path);
  if (is_baseline(document))
    baseline.models_ = document.at("models");
  else if (is_report(document))
    baseline.any_model_ = entry_of(document);
  else
    return fail(ErrorCode::kInvalidInput, path.string(), "is no baseline", "--update-baseline writes one");
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
    const std::string unknown = "is not in " + path_.string() + ": nothing to hold it against";
    if (new_models_ == NewModels::kFail)
      return fail(ErrorCode::kRequirement, model, unknown,
                  "--update-baseline enters it, --baseline-new warn or accept lets it pass");
    return {};
  }
  const json& known = known_of(model);
  const auto lost = changes_since(known, report).lost;
  const auto fewer = fewer_rewrites(rewrites_of(known), report);
  return lost.empty() && fewer.empty() ? Status{} : loss(lost, fewer, model, path_.string());
}

std::vector<std::string> Baseline::warnings(const json& report) const {
  const std::string model = report.at("input").get<std::string>(), enters = "; --update-baseline enters ";
  if (!knows(model))
    return new_models_ == NewModels::kWarn ? std::vector{model + " is not in " + path_.string() + enters + "it"}
                                           : std::vector<std::string>{};
  const Changes changes = changes_since(known_of(model), report);
  std::vector<std::string> texts;
  for (const json* site : changes.unknown)
    texts.push_back(model + ": attention " + title_of(*site) + " is not fused and not in " + path_.string() + ": " +
                    reason_of(*site) + enters + "it");
  if (!changes.maybe_lost.empty())
    texts.push_back(model + ": attention " + title_of(*changes.maybe_lost.front()) + " is not fused, and " + path_.string() +
                    " does not say whether it was: " + reason_of(*changes.maybe_lost.front()) + enters +
                    "what is not fused too");
  return texts;
}

void Baseline::mark_lost(json& report) const {
  for (json& site : report.at("sites")) site["lost"] = false;
  const std::string model = report.at("input").get<std::string>();
  if (!knows(model)) return;
  for (const LostSite& site : changes_since(known_of(model), report).lost)
    for (json& one : report.at("sites"))
      if (&one == site.now) one["lost"] = true;
}

std::vector<std::string> Baseline::accepted(const json& report) const {
  std::vector<std::string> texts;
  const std::string model = report.at("input").get<std::string>();
  if (!knows(model)) return texts;
  for (const LostSite& site : changes_since(known_of(model), report).lost)
    texts.push_back(model + ": attention " + phrase_of(site) + "; " + path_.string() + " accepts that now");
  for (const std::string& text : fewer_rewrites(rewrites_of(known_of(model)), report))
    texts.push_back(model + ": " + text + "; " + path_.string() + " accepts that now");
  return texts;
}

void Baseline::update(const json& report) {
  if (!any_model_.is_null()) any_model_ = json();
  models_[key_of(report.at("input").get<std::string>())] = entry_of(report);
}

std::vector<std::string> Baseline::vanished(const std::vector<std::string>& folders,
                                            const std::vector<fs::path>& models) const {
  std::set<std::string> there;
  for (const fs::path& model : models) there.insert(key_of(model.string()));
  std::vector<std::string> gone;
  for (const auto& [key, unused] : models_.items()) {
    const fs::path path = (folder_of(path_) / key).lexically_normal();
    const fs::path model(key);  // a name of its own: Clang below 16 captures no binding
    const auto is_above = [&](const std::string& folder) {
      const std::string rest = model.lexically_relative(key_of(folder)).generic_string();
      return !rest.empty() && rest != ".." && !rest.starts_with("../");
    };
    if (!there.contains(key) && std::ranges::any_of(folders, is_above)) gone.push_back(path.string());
  }
  return gone;
}

void Baseline::forget(const std::vector<std::string>& models) {
  for (const std::string& model : models) models_.erase(key_of(model));
}

Status Baseline::write() const {
  ATTN_OPT_TRY(OutputFile file, OutputFile::create(path_));
  ATTN_OPT_CHECK(file.append(json({{"schema_version", 1}, {"models", models_}}).dump(2) + "\n"));
  return file.replace_target();
}

const json& Baseline::known_of(const std::string& model) const {
  return any_model_.is_null() ? models_.at(key_of(model)) : any_model_;
}

std::string Baseline::key_of(const std::string& model) const {
  std::error_code none;
  const fs::path folder = fs::weakly_canonical(folder_of(path_), none), whole = fs::weakly_canonical(model, none);
  return model == "-" ? model : valid_utf8(whole.lexically_relative(folder).generic_string());
}

}  // namespace attn_opt
