#include "src/report/findings.h"

#include <optional>

#include "src/report/phrases.h"

namespace attn_opt {
namespace {

using nlohmann::json;

/// Reports of an earlier run, which a batch goes on from, may be older than these keys.
std::string field(const json& site, const char* key) { return text_of(site.value(key, json())); }

int line_of(const json& site) {
  const json line = site.value("source_line", json());
  return line.is_null() ? 0 : line.get<int>();
}

bool is_lost(const json& site) { return site.value("lost", json()) == true; }

/// "verified", "failed", "unverified"; empty where nothing was run.
std::string verdict_of(const json& place) {
  const json& verification = place.at("verification");
  return verification.is_null() ? "" : text_of(verification.at("verdict"));
}

std::optional<Finding> finding_at(const json& site, const std::string& model) {
  const std::string verdict = verdict_of(site);
  Finding finding;
  finding.graph = text_of(site.at("graph"));
  finding.name = text_of(site.at("name"));
  finding.is_error = is_lost(site);
  finding.message = title_of(site) + (finding.is_error ? " is no longer fused: " : " is not fused: ") + reason_of(site) +
                    ". Run: " + explain_command(model, site);
  finding.module = field(site, "module");
  finding.source_file = field(site, "source_file");
  finding.source_line = line_of(site);
  if (!site.at("miss").is_null()) {
    finding.rule = text_of(site.at("miss").at("id"));
  } else if (verdict == "failed") {
    finding.rule = kVerificationFailed;
    finding.is_error = true;
  } else if (verdict == "unverified") {
    finding.rule = kVerificationUnverified;
  } else {
    return std::nullopt;
  }
  return finding;
}

/// The command that says more of REWRITE: explain finds it with the options that the run had.
std::string explain_command_of_rewrite(const json& report, const json& rewrite) {
  const std::string command = explain_command(text_of(report.at("input")), rewrite), options = field(report, "options");
  return options.empty() ? command : command + " " + options;
}

std::optional<Finding> finding_of_rewrite(const json& rewrite, const json& report) {
  const bool is_applied = rewrite.at("miss").is_null();
  if (is_applied && verdict_of(rewrite) != "unverified") return std::nullopt;
  Finding finding;
  finding.rule = is_applied ? kVerificationUnverified : text_of(rewrite.at("miss").at("id"));
  finding.is_error = has_other_numbers(rewrite);
  finding.rewrite = text_of(rewrite.at("pattern"));
  finding.graph = text_of(rewrite.at("graph"));
  finding.name = text_of(rewrite.at("name"));
  finding.message = title_of_rewrite(rewrite) + (is_applied ? " is applied and was not verified: " : " is not applied: ") +
                    (is_applied ? text_of(rewrite.at("verification").at("reason")) : reason_of(rewrite)) +
                    ". Run: " + explain_command_of_rewrite(report, rewrite);
  return finding;
}

}  // namespace

std::vector<Finding> findings_of(const json& report) {
  std::vector<Finding> findings;
  for (const json& site : report.at("sites"))
    if (auto finding = finding_at(site, text_of(report.at("input")))) findings.push_back(*std::move(finding));
  for (const json& rewrite : report.value("rewrites", json::array()))
    if (auto finding = finding_of_rewrite(rewrite, report)) findings.push_back(*std::move(finding));
  for (const json& reason : report.at("not_raised"))
    findings.push_back({"opset.raise", false, "nothing can be fused: " + text_of(reason), "", text_of(report.at("input"))});
  if (const json caches = report.value("kv_cache", json()); !caches.is_null() && !caches.at("miss").is_null()) {
    const json& miss = caches.at("miss");
    findings.push_back({text_of(miss.at("id")), false, "caches are left growing: " + text_of(miss.at("found")), "",
                        text_of(report.at("input"))});
  }
  if (report.at("model_verification").is_null()) return findings;
  for (const json& output : report.at("model_verification").at("outputs"))
    if (!output.at("agrees").get<bool>())
      findings.push_back({kVerificationModel, true, text_of(output.at("difference")), "", text_of(output.at("name"))});
  return findings;
}

std::string qualified_name(const json& site) {
  const std::string graph = text_of(site.at("graph")), name = text_of(site.at("name"));
  return graph.empty() || graph == "main" ? name : graph + "/" + name;
}

std::string place_of(const json& site) {
  return place_phrase(text_of(site.at("name")), field(site, "module"), field(site, "source_file"), line_of(site));
}

std::string title_of(const json& site) {
  const std::string place = place_of(site), name = qualified_name(site);
  return place.empty() ? name : place.starts_with('(') ? name + " " + place : place;
}

std::string reason_of(const json& site) {
  const json& miss = site.at("miss");
  const std::string summary = text_of(site.at("summary"));
  if (miss.is_null()) return site.at("outcome") == "refused" ? "its numbers differ: " + summary : summary;
  return reason_phrase(text_of(site.at("name")), text_of(miss.at("id")), text_of(miss.at("node")), text_of(miss.at("op")),
                       text_of(miss.at("found")));
}

std::string explain_command(const std::string& model, const json& site) {
  return explain_words(model, text_of(site.at("graph")), text_of(site.at("name")));
}

std::string title_of_rewrite(const json& rewrite) { return text_of(rewrite.at("pattern")) + " at " + qualified_name(rewrite); }

bool has_other_numbers(const json& rewrite) {
  return !rewrite.at("miss").is_null() && text_of(rewrite.at("miss").at("id")) == kVerificationFailed;
}

std::string text_of(const json& value) { return value.is_null() ? "" : value.get<std::string>(); }

}  // namespace attn_opt
