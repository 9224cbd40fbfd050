#include "attn_opt/report.h"

#include <algorithm>
#include <array>

#include "src/report/findings.h"
#include "src/report/miss_manual.h"
#include "src/report/names.h"
#include "src/report/rewrites.h"

namespace attn_opt {
namespace {

int count(const Report& report, SiteReport::Outcome outcome) {
  return static_cast<int>(
      std::count_if(report.sites.begin(), report.sites.end(), [&](const SiteReport& site) { return site.outcome == outcome; }));
}

}  // namespace

int Report::fused() const { return count(*this, SiteReport::Outcome::kFused); }
int Report::missed() const { return count(*this, SiteReport::Outcome::kMissed); }
int Report::refused() const { return count(*this, SiteReport::Outcome::kRefused); }

int Report::rewritten() const { return count_of_rewrites(*this, SiteReport::Outcome::kFused); }

std::string_view name_of(SiteReport::Outcome outcome) {
  switch (outcome) {
    case SiteReport::Outcome::kFused: return "fused";
    case SiteReport::Outcome::kMissed: return "missed";
    case SiteReport::Outcome::kRefused: return "refused";
  }
  return "missed";
}

std::string_view name_of(SiteGraph::Node::Role role) {
  constexpr std::array kNames = {"plain", "anchor", "walked", "stopped", "written"};
  return kNames.at(static_cast<size_t>(role));
}

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kVerified: return "verified";
    case Verdict::kFailed: return "failed";
    case Verdict::kUnverified: return "unverified";
  }
  return "unverified";
}

std::string_view state_of(const Precondition& condition) {
  return condition.proven ? "proven" : condition.is_refinement ? "refined" : "assumed";
}

std::string_view miss_id_of(Verdict verdict) {
  return verdict == Verdict::kFailed ? kVerificationFailed : kVerificationUnverified;
}

std::string hint_of(const std::string& miss_id) {
  return manual_of(miss_id).text.empty() ? "" : "attn-opt explain --id " + miss_id;
}

}  // namespace attn_opt
