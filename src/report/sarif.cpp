// SARIF 2.1.0 (OASIS Static Analysis Results Interchange Format): what code scanning reads.
#include <filesystem>
#include <map>
#include <optional>

#include "attn_opt/report.h"
#include "src/graph/provenance.h"
#include "src/report/findings.h"
#include "src/report/miss_manual.h"
#include "src/report/names.h"
#include "src/report/report_streams.h"

namespace attn_opt {
namespace {

using nlohmann::json;

/// Of the operator that everything is about: what is said of each rule is in the file itself.
constexpr const char* kHomepage = "https://onnx.ai/onnx/operators/onnx__Attention.html";

std::string dump(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

/// RFC 3986: PATH as a relative reference, or as a file's address if it is absolute.
std::string uri_of(const std::string& path) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string uri = path.starts_with('/') ? "file://" : "";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (kPlain.find(c) != std::string_view::npos)
      uri += c;
    else
      uri += {'%', kDigits[byte / 16], kDigits[byte % 16]};
  }
  return uri;
}

std::string first_sentence(const std::string& text) {
  const size_t end = text.find(". ");
  return end == std::string::npos ? text : text.substr(0, end + 1);
}

json rule_of(const std::string& id) {
  const MissManual manual = manual_of(id);
  const std::string meaning = manual.meaning.empty() ? id : without_marks(manual.meaning);
  json rule = {{"id", id},
               {"helpUri", kHomepage},
               {"shortDescription", {{"text", first_sentence(meaning)}}},
               {"fullDescription", {{"text", meaning}}},
               {"defaultConfiguration", {{"level", "warning"}}}};
  if (!manual.text.empty()) rule["help"] = {{"text", without_marks(manual.text)}, {"markdown", manual.text}};
  return rule;
}

json physical_location(json artifact, int line) {
  return {{"artifactLocation", std::move(artifact)}, {"region", {{"startLine", line}}}};
}

/// Readers show a result at a line; a model has none but the first.
json model_location(const std::string& input, size_t artifact) {
  return physical_location({{"uri", uri_of(input)}, {"index", artifact}}, 1);
}

json logical_locations(const Finding& finding) {
  const std::string path = finding.graph.empty() ? finding.name : finding.graph + "/" + finding.name;
  json places = json::array({{{"name", finding.name}, {"fullyQualifiedName", path}, {"kind", "object"}}});
  if (!finding.module.empty()) places.push_back({{"name", finding.module}, {"kind", "module"}});
  return places;
}

/// FILE as it is called from the folder that reports are written for: an exporter that ran elsewhere had the same project in
/// another folder. None where there is no such file: an alert on it could not be shown.
std::optional<std::string> path_from_here(const std::string& file) {
  namespace fs = std::filesystem;
  std::error_code none;
  const fs::path path(file);
  if (path.is_relative()) return file;
  for (auto first = path.begin(); first != path.end(); ++first) {
    fs::path rest;
    for (auto part = first; part != path.end(); ++part) rest /= *part;
    if (rest.is_relative() && fs::is_regular_file(rest, none)) return rest.string();
  }
  return fs::is_regular_file(path, none) ? std::optional(file) : std::nullopt;
}

/// What a finding is about: "Attention " begins what is said of a site, "Rewrite " what is said of one.
std::string subject_of(const Finding& finding) {
  if (!finding.rewrite.empty()) return "Rewrite ";
  return finding.graph.empty() ? finding.name + ": " : "Attention ";
}

bool has_own_source(const Finding& finding) { return finding.source_line > 0 && !is_installed(finding.source_file); }

/// What stays the same when the model is exported anew, since exporters number nodes: the module, where it is known. COUNTS has
/// how many findings of a model were called so.
std::string fingerprint_of(const Finding& finding, std::map<std::string, int>& counts) {
  const std::string rewrite = finding.rewrite.empty() ? "" : " " + finding.rewrite;
  const std::string place =
      finding.graph + "/" + (finding.module.empty() ? finding.name : finding.module) + rewrite + " " + finding.rule;
  const int before = counts[place]++;
  return before == 0 ? place : place + " #" + std::to_string(before + 1);
}

class Sarif : public ReportStream {
 public:
  std::string begin() override {
    return "{\"$schema\":\"https://docs.oasis-open.org/sarif/sarif/v2.1.0/cs01/schemas/sarif-schema-2.1.0.json\","
           "\"version\":\"2.1.0\",\"runs\":[{\"results\":[";
  }

  std::string add(const ModelOutcome& model) override {
    artifacts_.push_back({{"location", {{"uri", uri_of(model.input)}}}, {"roles", {"analysisTarget"}}});
    invocations_.push_back(invocation(model));
    if (model.report.is_null()) return {};
    version_ = text_of(model.report.at("tool").at("version"));
    std::string text;
    std::map<std::string, int> counts;
    for (const Finding& finding : findings_of(model.report)) {
      json one = result(finding, model.input);
      const char* const key = finding.rewrite.empty() ? "attentionSite/v1" : "rewrite/v1";
      one["partialFingerprints"] = {{key, fingerprint_of(finding, counts)}};
      text += (any_ ? ",\n" : "\n") + dump(one);
      any_ = true;
    }
    return text;
  }

  std::string end() override {
    json driver = {{"name", "attn-opt"}, {"informationUri", kHomepage}, {"rules", rules_}};
    if (!version_.empty()) driver["version"] = version_;
    return "\n],\n\"tool\":" + dump({{"driver", driver}}) + ",\n\"artifacts\":" + dump(artifacts_) +
           ",\n\"invocations\":" + dump(invocations_) + ",\"columnKind\":\"utf16CodeUnits\"}]}\n";
  }

 private:
  json invocation(const ModelOutcome& model) const {
    json run = {{"executionSuccessful", model.status == 0}, {"exitCode", model.status}};
    if (model.message.empty()) return run;
    const json artifact = {{"artifactLocation", {{"uri", uri_of(model.input)}, {"index", artifacts_.size() - 1}}}};
    run["toolExecutionNotifications"] = json::array({{{"level", "error"},
                                                      {"message", {{"text", model.message}}},
                                                      {"locations", json::array({{{"physicalLocation", artifact}}})}}});
    return run;
  }

  json result(const Finding& finding, const std::string& input) {
    const auto [rule, is_new] = rule_index_.emplace(finding.rule, rules_.size());
    if (is_new) rules_.push_back(rule_of(finding.rule));
    const json in_model = model_location(input, artifacts_.size() - 1);
    json place = {{"physicalLocation", in_model}, {"logicalLocations", logical_locations(finding)}};
    json result = {{"ruleId", finding.rule},
                   {"ruleIndex", rule->second},
                   {"level", finding.is_error ? "error" : "warning"},
                   {"message", {{"text", subject_of(finding) + finding.message}}}};
    const auto source = has_own_source(finding) ? path_from_here(finding.source_file) : std::nullopt;
    if (source) {  // GitHub shows the first location alone, and pull requests at lines of text
      place["physicalLocation"] = physical_location({{"uri", uri_of(*source)}}, finding.source_line);
      result["relatedLocations"] = json::array({{{"physicalLocation", in_model}, {"message", {{"text", "the model"}}}}});
    }
    result["locations"] = json::array({std::move(place)});
    return result;
  }

  json artifacts_ = json::array(), rules_ = json::array(), invocations_ = json::array();
  std::map<std::string, size_t> rule_index_;
  std::string version_;
  bool any_ = false;
};

}  // namespace

std::unique_ptr<ReportStream> sarif_stream() { return std::make_unique<Sarif>(); }

}  // namespace attn_opt
