#include "src/report/assumption_counts.h"

#include <fmt/format.h>

#include <set>

namespace attn_opt {

AssumptionCounts count_assumptions(const Report& report) {
  AssumptionCounts counts;
  for (const SiteReport& site : report.sites) {
    if (site.outcome != SiteReport::Outcome::kFused) continue;
    std::set<std::string> ids;
    bool is_refined = false;
    for (const Precondition& condition : site.preconditions) {
      if (condition.proven) continue;
      if (condition.is_refinement) is_refined = true;
      else ids.insert(condition.id);
    }
    for (const std::string& id : ids) ++counts.assumed[id];
    counts.refined += is_refined;
    counts.unverified += !site.verification || site.verification->verdict != Verdict::kVerified;
  }
  return counts;
}

std::string assumption_phrase(const AssumptionCounts& counts) {
  std::string text;
  const auto add = [&text](const std::string& what, int sites) {
    text += fmt::format("{}{} ({} site{})", text.empty() ? "depends on: " : ", ", what, sites, sites == 1 ? "" : "s");
  };
  for (const auto& [id, sites] : counts.assumed)
    if (id != kSizesNotEmpty) add(id, sites);
  if (counts.refined > 0) add("NaN may become a number", counts.refined);
  if (const auto found = counts.assumed.find(kSizesNotEmpty); found != counts.assumed.end()) add("no size is 0", found->second);
  return text;
}

}  // namespace attn_opt
