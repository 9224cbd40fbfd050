#include <fmt/format.h>

#include <algorithm>

#include "attn_opt/report.h"
#include "src/report/layout.h"
#include "src/report/names.h"
#include "src/report/phrases.h"

namespace attn_opt {
namespace {

using Outcome = SiteReport::Outcome;
constexpr size_t kWidestLabel = 60, kWidestName = 38, kOutcomeWidth = 8;

std::string table(const Report& report) {
  size_t width = 0;
  std::vector<OperatorCount> rows = {{"opset", report.opset_before, report.opset_after},
                                     {"nodes", report.nodes_before, report.nodes_after}};
  for (const OperatorCount& count : report.operators) rows.push_back({"  " + count.op, count.before, count.after});
  for (OperatorCount& row : rows) {
    row.op = elided(row.op, kWidestLabel);
    width = std::max(width, row.op.size());
  }
  std::string text = fmt::format("{:{}}  {:>8}  {:>8}\n", "", width, "before", "after");
  for (const OperatorCount& row : rows) {
    text += fmt::format("{:{}}  {:>8}  {:>8}\n", row.op, width, row.before, row.after);
  }
  return text;
}

std::string sites_line(const Report& report) {
  const auto verified = std::count_if(report.sites.begin(), report.sites.end(), [](const SiteReport& site) {
    return site.outcome == Outcome::kFused && site.verification && site.verification->verdict == Verdict::kVerified;
  });
  return fmt::format("attention sites: {} fused ({} verified), {} refused, {} missed\n", report.fused(), verified,
                     report.refused(), report.missed());
}

/// What stands in the line of a site, and what may follow in lines below.
struct SiteText {
  std::string line, below;
};

SiteText describe(const SiteReport& site) {
  if (site.outcome == Outcome::kMissed) return {site.miss_id, miss_phrase(site) + "; " + hint_of(site.miss_id)};
  SiteText text{form_phrase(site) + ", " + short_verdict(site), {}};
  if (site.verification) text.below = site.verification->reason;
  if (site.outcome == Outcome::kRefused && !site.miss_id.empty()) {
    text.below += (text.below.empty() ? "" : "; ") + site.miss_id + ": " + site.found;
  }
  return text;
}

std::string site_lines(const Report& report) {
  size_t width = 0;
  for (const SiteReport& site : report.sites) width = std::max(width, site_name(site, kWidestName).size());
  std::string text;
  for (const SiteReport& site : report.sites) {
    const SiteText described = describe(site);
    const std::string start =
        fmt::format("{:<{}}{:<{}}  ", name_of(site.outcome), kOutcomeWidth, site_name(site, kWidestName), width);
    if (start.size() + described.line.size() <= kColumns) {
      text += start + described.line + "\n";
    } else {
      text += start.substr(0, start.find_last_not_of(' ') + 1) + "\n" + wrapped(described.line, kOutcomeWidth);
    }
    text += wrapped(described.below, kOutcomeWidth);
  }
  return text;
}

}  // namespace

std::string to_text(const Report& report, bool with_sites) {
  std::string text = table(report) + "\n" + sites_line(report);
  for (const std::string& reason : report.not_raised) {
    text += wrapped("opset.raise: " + reason + "; " + hint_of("opset.raise"), 0);
  }
  if (with_sites && !report.sites.empty()) text += "\n" + site_lines(report);
  return text;
}

}  // namespace attn_opt
