#include <fmt/format.h>

#include <algorithm>

#include "attn_opt/report.h"
#include "src/report/assumption_counts.h"
#include "src/report/effect_total.h"
#include "src/report/layout.h"
#include "src/report/names.h"
#include "src/report/phrases.h"

namespace attn_opt {
namespace {

using Outcome = SiteReport::Outcome;
constexpr size_t kWidestLabel = 60, kOutcomeWidth = 8, kWidestName = kColumns - kOutcomeWidth;

std::string table(const Report& report) {
  size_t width = 0;
  std::vector<OperatorCount> rows = {{"opset", report.opset_before, report.opset_after},
                                     {"nodes", report.nodes_before, report.nodes_after}};
  for (const OperatorCount& count : report.operators)
    rows.push_back({"  " + count.op, count.before, count.after});
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
    return site.outcome == Outcome::kFused && site.verification &&
           site.verification->verdict == Verdict::kVerified;
  });
  return fmt::format("attention sites: {} fused ({} verified), {} refused, {} missed\n", report.fused(),
                     verified, report.refused(), report.missed());
}

/// "1.5 GB".
std::string rounded_bytes(int64_t bytes) {
  static constexpr const char* kUnits[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
  double amount = static_cast<double>(bytes);
  size_t unit = 0;
  while (amount >= 1000 && unit + 1 < std::size(kUnits)) {
    amount /= 1000;
    ++unit;
  }
  return fmt::format("{:.3g} {}", amount, kUnits[unit]);
}

std::string effect_lines(const Report& report) {
  if (report.fused() == 0) return {};
  const EffectTotal total = total_effect(report);
  if (total.score_bytes == Dim(0)) return {};
  std::string text = fmt::format("no longer made at each run: tensors as large as the scores, {} bytes", total.score_bytes.str());
  if (!total.sizes.empty() && total.example_score_bytes) {
    std::vector<std::string> sizes;
    for (const auto& [symbol, size] : total.sizes) sizes.push_back(fmt::format("{} = {}", symbol, size));
    text += fmt::format("; {} where {}", rounded_bytes(*total.example_score_bytes), joined(sizes, ", "));
  } else if (total.example_score_bytes) {
    text += fmt::format(" ({})", rounded_bytes(*total.example_score_bytes));
  }
  return wrapped(text, 0);
}

std::string model_lines(const Report& report) {
  if (!report.model_verification) return {};
  const auto& [runs, outputs] = *report.model_verification;
  const auto agree = std::ranges::count_if(outputs, &ModelVerification::Output::agrees);
  std::string text = fmt::format("whole model: {} of {} outputs agree over {} runs\n", agree, outputs.size(), runs);
  for (const auto& output : outputs) {
    if (!output.agrees) text += wrapped(output.name + " differs: " + output.difference, 2);
  }
  return text;
}

/// What is said of a site: in its own line if there is room, and in lines below.
struct SiteText {
  std::string line, below;
  std::string together;  ///< both, if there is no room
};

std::string with_hint(const std::string& phrase, const std::string& miss_id) {
  const std::string hint = hint_of(miss_id);
  return hint.empty() ? phrase : phrase + "; " + hint;
}

SiteText describe(const SiteReport& site) {
  if (!site.miss_id.empty()) {
    const std::string below = with_hint(miss_phrase(site), site.miss_id);
    return {site.miss_id, below, site.miss_id + " " + below};
  }
  const std::string line = form_phrase(site) + ", " + short_verdict(site);
  const std::string below = site.verification ? site.verification->reason : "";
  return {line, below, below.empty() ? line : line + ": " + below};
}

std::string site_lines(const Report& report) {
  size_t name_width = 0, line_width = 0;
  for (const SiteReport& site : report.sites) {
    name_width = std::max(name_width, site_label(site, kWidestName).size());
    line_width = std::max(line_width, describe(site).line.size());
  }
  constexpr std::string_view kGap = "  ";
  const bool all_fit = kOutcomeWidth + name_width + kGap.size() + line_width <= kColumns;
  std::string text;
  for (const SiteReport& site : report.sites) {
    const SiteText described = describe(site);
    const std::string name = site_label(site, kWidestName);
    text += fmt::format("{:<{}}", name_of(site.outcome), kOutcomeWidth);
    if (all_fit) {
      text += fmt::format("{:<{}}{}{}\n", name, name_width, kGap, described.line) +
              wrapped(described.below, kOutcomeWidth);
    } else {
      text += name + "\n" + wrapped(described.together, kOutcomeWidth);
    }
    for (const OtherMiss& other : site.other_misses)
      text += wrapped("also " + with_hint(miss_phrase(other), other.id), kOutcomeWidth);
  }
  return text;
}

}  // namespace

std::string to_text(const Report& report, bool with_sites) {
  std::string text = table(report) + "\n" + sites_line(report) + wrapped(assumption_phrase(count_assumptions(report)), 0) + effect_lines(report) + model_lines(report);
  for (const std::string& reason : report.not_raised) {
    text += wrapped(with_hint("opset.raise: " + reason, "opset.raise"), 0);
  }
  if (with_sites && !report.sites.empty()) text += "\n" + site_lines(report);
  return text;
}

}  // namespace attn_opt
