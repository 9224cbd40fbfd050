#include "src/report/assumption_counts.h"

#include <fmt/format.h>

#include <functional>
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
      if (condition.is_refinement)
        is_refined = true;
      else
        ids.insert(condition.id);
    }
    for (const std::string& id : ids) ++counts.assumed[id];
    counts.refined += is_refined;
    counts.unverified += !site.verification || site.verification->verdict != Verdict::kVerified;
  }
  return counts;
}

namespace {

/// What the precondition ID says; ID itself if it is none of ours.
std::string in_words(const std::string& id) {
  static const std::map<std::string, std::string, std::less<>> kWords = {
      {"scores-finite", "scores are finite"},
      {"scores-above-fill", "scores are above the mask's fill"},
      {"scores-within-clamp", "scores are within a clamp"},
      {"values-finite", "V is finite"},
      {"rows-keep-a-key", "each row keeps a key"},
      {"exp-in-range", "exp() stays in its range"},
      {"biases-small", "biases that are added to each other are small"},
      {"factors-in-range", "factors leave Q, K and V in range"},
      {"sizes-equal", "sizes are equal"},
      {"sizes-not-empty", "no size is 0"},
      {"lengths-in-range", "lengths are in their range"},
      {"masks-binary", "masks of floats hold 0 and 1"},
      {"masks-not-negative", "masks of floats hold nothing below 0"}};
  const auto words = kWords.find(id);
  return words == kWords.end() ? id : words->second;
}

std::string assumed_of(int sites, const std::string& id, bool is_first) {
  return fmt::format("{} {}that {}", sites, !is_first ? "" : sites == 1 ? "site assumes " : "sites assume ", in_words(id));
}

}  // namespace

std::string assurance_phrase(int fused, const AssumptionCounts& counts) {
  if (fused == 0) return {};
  std::string text = fmt::format("{} of {} verified", fused - counts.unverified, fused), assumed;
  for (const auto& [id, sites] : counts.assumed)
    if (id != kSizesNotEmpty) assumed += (assumed.empty() ? "; " : ", ") + assumed_of(sites, id, assumed.empty());
  if (!assumed.empty()) text += assumed + " (explain says why, --strict refuses)";
  if (counts.refined > 0) text += fmt::format("; at {} NaN may become a number", counts.refined);
  if (const auto found = counts.assumed.find(kSizesNotEmpty); found != counts.assumed.end())
    text += "; " + assumed_of(found->second, found->first, true);
  return text;
}

}  // namespace attn_opt
