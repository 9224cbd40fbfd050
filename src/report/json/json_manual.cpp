#include "src/report/json/json_manual.h"

#include "src/report/json/json_values.h"
#include "src/report/miss_manual.h"
#include "src/report/names.h"

namespace attn_opt {
namespace {

using nlohmann::json;

void enter_miss(const std::string& id, json& misses) {
  if (id.empty()) return;
  const MissManual manual = manual_of(id);
  if (manual.text.empty()) return;
  misses[id] = {
      {"meaning", manual.meaning}, {"example", text_or_null(manual.example)}, {"remedy", text_or_null(manual.remedy)}};
}

void enter_precondition(const std::string& id, json& preconditions) {
  const std::string meaning = meaning_of_precondition(id);
  if (!meaning.empty()) preconditions[id] = meaning;
}

}  // namespace

json manual_for(const Report& report) {
  json misses = json::object(), preconditions = json::object();
  if (!report.not_raised.empty()) enter_miss("opset.raise", misses);
  if (report.kv_cache) enter_miss(report.kv_cache->miss_id, misses);
  for (const RewriteReport& rewrite : report.rewrites) enter_miss(rewrite.miss_id, misses);
  for (const SiteReport& site : report.sites) {
    enter_miss(site.miss_id, misses);
    for (const OtherMiss& other : site.other_misses) enter_miss(other.id, misses);
    for (const Precondition& one : site.preconditions) enter_precondition(one.id, preconditions);
    if (site.miss_id.empty() && site.verification && site.verification->verdict != Verdict::kVerified)
      enter_miss(std::string(miss_id_of(site.verification->verdict)), misses);
  }
  return {{"misses", std::move(misses)}, {"preconditions", std::move(preconditions)}};
}

}  // namespace attn_opt
