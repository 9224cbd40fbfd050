#include <nlohmann/json.hpp>

#include "attn_opt/report.h"
#include "src/report/assumption_counts.h"
#include "src/report/effect_total.h"
#include "src/report/json/json_groups.h"
#include "src/report/json/json_manual.h"
#include "src/report/json/json_values.h"
#include "src/report/kv_cache.h"
#include "src/report/names.h"
#include "src/report/phrases.h"
#include "src/report/report_stream.h"
#include "src/report/rewrites.h"

namespace attn_opt {
namespace {

using nlohmann::json;

json preconditions(const std::vector<Precondition>& list) {
  json array = json::array();
  for (const Precondition& one : list) {
    array.push_back(
        {{"id", text(one.id)}, {"proven", one.proven}, {"refinement", one.is_refinement}, {"detail", text(one.detail)}});
  }
  return array;
}

json verification(const std::optional<Verification>& result) {
  if (!result) return {};
  return {{"verdict", name_of(result->verdict)},
          {"reason", text_or_null(result->reason)},
          {"algebra_difference", number(result->algebra_difference)},
          {"type_difference_ulp", number(result->type_difference_ulp)},
          {"draws", result->draws},
          {"seconds", number(result->seconds)},
          {"shared", result->shared},
          {"explained_by", texts(result->explained_by)}};
}

json miss(const std::string& id, const std::string& node, const std::string& op, const std::string& found) {
  if (id.empty()) return {};
  return {{"id", text(id)},
          {"node", text_or_null(node)},
          {"op", text_or_null(op)},
          {"found", text(found)},
          {"hint", text_or_null(hint_of(id))}};
}

json other_misses(const std::vector<OtherMiss>& misses) {
  json array = json::array();
  for (const OtherMiss& other : misses) {
    array.push_back(miss(other.id, other.node, other.op, other.found));
    array.back()["pattern"] = text(other.pattern);
    array.back()["peeled"] = texts(other.peeled);
  }
  return array;
}

json effect(const std::optional<Effect>& effect, const EffectTotal& total) {
  if (!effect) return {};
  return {{"score_bytes", text(effect->score_bytes.str())},
          {"example_score_bytes", bytes_or_null(example_bytes(effect->score_bytes, total.sizes))},
          {"nodes_removed", effect->nodes_removed},
          {"nodes_added", effect->nodes_added},
          {"products_of_softmax", effect->products}};
}

json effect(const EffectTotal& total) {
  json sizes = json::object();
  for (const auto& [symbol, size] : total.sizes) sizes[text(symbol).get<std::string>()] = size;
  return {{"score_bytes", text(total.score_bytes.str())},
          {"example_sizes", std::move(sizes)},
          {"example_score_bytes", bytes_or_null(total.example_score_bytes)},
          {"nodes_removed", total.nodes_removed},
          {"nodes_added", total.nodes_added}};
}

json site_object(const SiteReport& site, const EffectTotal& total, SiteGroups& groups) {
  const bool recognised = site.outcome != SiteReport::Outcome::kMissed;
  return {{"kind", "attention"},
          {"name", text(site.name)},
          {"op", text(site.op)},
          {"graph", text(site.graph)},
          {"module", text_or_null(site.module)},
          {"source_file", text_or_null(site.source_file)},
          {"source_line", count_or_null(site.source_line)},
          {"pattern", text_or_null(site.pattern)},
          {"outcome", name_of(site.outcome)},
          {"lost", nullptr},
          {"group", groups.group_of(site)},
          {"type", text_or_null(site.type)},
          {"tensors", tensors_by_role(site)},
          {"nodes_before", node_names(site.before)},
          {"nodes_after", node_names(site.after)},
          {"summary", text(site_phrase(site))},
          {"form", text_or_null(site.form)},
          {"q_heads", count_or_null(site.q_heads)},
          {"kv_heads", count_or_null(site.kv_heads)},
          {"past", recognised ? json(site.past) : json()},
          {"is_causal", recognised ? json(site.is_causal) : json()},
          {"mask", text_or_null(site.mask_reading)},
          {"scale", recognised ? number(site.scale) : json()},
          {"softcap", recognised ? number(site.softcap) : json()},
          {"peeled", texts(site.peeled)},
          {"preconditions", preconditions(site.preconditions)},
          {"verification", verification(site.verification)},
          {"effect", effect(site.effect, total)},
          {"miss", miss(site.miss_id, site.miss_node, site.miss_op, site.found)},
          {"other_misses", other_misses(site.other_misses)},
          {"match_seconds", number(site.match_seconds)}};
}

json rewrite_object(const RewriteReport& rewrite) {
  return {{"kind", "rewrite"},
          {"name", text(rewrite.name)},
          {"op", text(rewrite.op)},
          {"graph", text(rewrite.graph)},
          {"pattern", text(rewrite.pattern)},
          {"outcome", outcome_of(rewrite)},
          {"summary", text(rewrite_phrase(rewrite))},
          {"nodes", texts(rewrite.nodes)},
          {"written", texts(rewrite.operators)},
          {"peeled", texts(rewrite.peeled)},
          {"verification", verification(rewrite.verification)},
          {"miss", miss(rewrite.miss_id, rewrite.miss_node, rewrite.miss_op, rewrite.found)},
          {"match_seconds", number(rewrite.match_seconds)}};
}

json model_verification(const std::optional<ModelVerification>& result) {
  if (!result) return {};
  json outputs = json::array();
  for (const auto& output : result->outputs) {
    outputs.push_back({{"name", text(output.name)},
                       {"agrees", output.agrees},
                       {"absolute", number(output.absolute)},
                       {"relative", number(output.relative)},
                       {"ulp", number(output.ulp)},
                       {"difference", text(output.difference)}});
  }
  return {{"runs", result->runs}, {"outputs", std::move(outputs)}};
}

json changed_shapes(const std::vector<KvCacheReport::Tensor>& tensors) {
  json array = json::array();
  for (const auto& tensor : tensors)
    array.push_back({{"name", text(tensor.name)},
                     {"type", tensor.type},
                     {"before", tensor.before.empty() ? json() : texts(tensor.before)},
                     {"after", texts(tensor.after)}});
  return array;
}

json kv_cache(const std::optional<KvCacheReport>& caches) {
  if (!caches) return {};
  const bool is_static = caches->outcome == PlaceReport::Outcome::kFused;
  return {{"static", is_static},
          {"sites", caches->sites},
          {"length", text_or_null(caches->length)},
          {"length_input", text_or_null(caches->length_input)},
          {"inputs", changed_shapes(caches->inputs)},
          {"outputs", changed_shapes(caches->outputs)},
          {"calling", is_static ? text(calling_phrase(caches->length, caches->length_input)) : json()},
          {"verification", verification(caches->verification)},
          {"miss", miss(caches->miss_id, caches->miss_node, caches->miss_op, caches->found)}};
}

json summary(const Report& report) {
  const AssumptionCounts counts = count_assumptions(report);
  return {{"sites", report.sites.size()},
          {"fused", report.fused()},
          {"refused", report.refused()},
          {"missed", report.missed()},
          {"assumed", counts.assumed},
          {"refined", counts.refined},
          {"unverified", counts.unverified},
          {"rewritten", report.rewritten()},
          {"rewrites_refused", count_of_rewrites(report, PlaceReport::Outcome::kRefused)},
          {"rewrites_missed", count_of_rewrites(report, PlaceReport::Outcome::kMissed)}};
}

json before_after(int before, int after) { return {{"before", before}, {"after", after}}; }

}  // namespace

json to_json(const Report& report) {
  json sites = json::array();
  const EffectTotal total = total_effect(report);
  SiteGroups groups;
  for (const SiteReport& site : report.sites) sites.push_back(site_object(site, total, groups));
  json rewritten = json::array();
  for (const RewriteReport& rewrite : report.rewrites) rewritten.push_back(rewrite_object(rewrite));
  json operators = json::array();
  for (const OperatorCount& count : report.operators) {
    operators.push_back({{"op", text(count.op)}, {"before", count.before}, {"after", count.after}});
  }
  return {{"schema_version", Report::kSchemaVersion},
          {"tool", {{"name", "attn-opt"}, {"version", text(report.tool_version)}}},
          {"input", text(report.input)},
          {"output", text_or_null(report.output)},
          {"options", text(report.options)},
          {"bytes",
           {{"input", bytes_or_null(report.input_bytes)},
            {"output", bytes_or_null(report.output_bytes)},
            {"weights", report.weight_bytes}}},
          {"changed", report.changed},
          {"opset", before_after(report.opset_before, report.opset_after)},
          {"nodes", before_after(report.nodes_before, report.nodes_after)},
          {"attention_nodes", report.attention_nodes},
          {"operators", std::move(operators)},
          {"summary", summary(report)},
          {"effect", effect(total)},
          {"model_verification", model_verification(report.model_verification)},
          {"kv_cache", kv_cache(report.kv_cache)},
          {"not_raised", texts(report.not_raised)},
          {"seconds",
           {{"read", number(report.seconds_read)},
            {"match", number(report.seconds_match)},
            {"verify", number(report.seconds_verify)},
            {"write", number(report.seconds_write)},
            {"total", number(report.seconds_total)}}},
          {"sites", std::move(sites)},
          {"groups", groups.list()},
          {"manual", manual_for(report)},
          {"rewrites", std::move(rewritten)},
          {"rewrites_left", report.has_rewrites_left}};
}

}  // namespace attn_opt
