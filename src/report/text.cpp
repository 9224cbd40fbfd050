#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <functional>

#include "attn_opt/report.h"
#include "src/report/assumption_counts.h"
#include "src/report/drawing/layout.h"
#include "src/report/effect_total.h"
#include "src/report/kv_cache.h"
#include "src/report/names.h"
#include "src/report/phrases.h"
#include "src/report/rewrites.h"

namespace attn_opt {
namespace {

using Outcome = SiteReport::Outcome;
constexpr size_t kWidestLabel = 60, kOutcomeWidth = 8, kMostOperators = 8, kMostNamed = 5;

/// Of OPERATORS the MOST whose number changed most, Attention before all, in the order that they have.
std::vector<OperatorCount> most_changed(const std::vector<OperatorCount>& operators, size_t most) {
  const auto change = [](const OperatorCount& one) {
    return one.op == "Attention" ? INT_MAX : std::abs(one.after - one.before);
  };
  std::vector<const OperatorCount*> chosen;
  for (const OperatorCount& one : operators) chosen.push_back(&one);
  std::ranges::stable_sort(chosen, std::ranges::greater(), [&](const OperatorCount* one) { return change(*one); });
  chosen.resize(std::min(most, chosen.size()));
  std::ranges::sort(chosen);
  std::vector<OperatorCount> rows;
  for (const OperatorCount* one : chosen) rows.push_back(*one);
  return rows;
}

std::string table(const Report& report, size_t most_operators) {
  size_t width = 0;
  std::vector<OperatorCount> rows = {{"opset", report.opset_before, report.opset_after},
                                     {"nodes", report.nodes_before, report.nodes_after}};
  for (const OperatorCount& count : most_changed(report.operators, most_operators))
    rows.push_back({"  " + count.op, count.before, count.after});
  for (OperatorCount& row : rows) {
    row.op = elided(row.op, kWidestLabel);
    width = std::max(width, row.op.size());
  }
  std::string text = fmt::format("{:{}}  {:>8}  {:>8}\n", "", width, "before", "after");
  for (const OperatorCount& row : rows) {
    text += fmt::format("{:{}}  {:>8}  {:>8}\n", row.op, width, row.before, row.after);
  }
  if (report.operators.size() > most_operators) text += fmt::format("  {} more\n", report.operators.size() - most_operators);
  return text;
}

/// Nothing where there are rewrites alone.
std::string sites_line(const Report& report) {
  const std::string already = already_phrase(report);
  if (report.sites.empty() && !report.rewrites.empty() && report.not_raised.empty())
    return already.empty() ? "" : "no attention to fuse: " + already + "\n";
  return fmt::format("attention sites: {} of {} fused, {} refused, {} missed{}\n", report.fused(), report.sites.size(),
                     report.refused(), report.missed(), already.empty() ? "" : "; " + already);
}

/// How many sites may take longer than before.
std::string slower_lines(const Report& report) {
  const auto slower =
      std::ranges::count_if(report.sites, [](const SiteReport& site) { return site.effect && site.effect->products > 1; });
  if (slower == 0) return {};
  return wrapped(fmt::format("{} of them share a softmax and make its scores again each: slower in ONNX Runtime on the CPU "
                             "(--target ort leaves them)",
                             slower),
                 0);
}

std::string effect_lines(const Report& report) {
  if (report.fused() == 0) return {};
  const EffectTotal total = total_effect(report);
  if (total.score_bytes == Dim(0)) return {};
  std::string text = fmt::format("score tensors no longer made in each run: {} bytes", total.score_bytes.str());
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

/// PHRASE after INDENT blanks and, in a line of its own so that it can be copied, what to run.
std::string with_hint(const std::string& phrase, const std::string& miss_id, size_t indent) {
  const std::string hint = hint_of(miss_id);
  return wrapped(phrase, indent) + (hint.empty() ? "" : std::string(indent, ' ') + hint + "\n");
}

SiteText describe(const SiteReport& site) {
  if (!site.miss_id.empty()) {
    const std::string below = miss_phrase(site);
    return {site.miss_id, below, site.miss_id + " " + below};
  }
  const std::string line = form_phrase(site) + ", " + short_verdict(site);
  const std::string below = site.verification ? site.verification->reason : "";
  return {line, below, below.empty() ? line : line + ": " + below};
}

/// The first sites that are not fused, and what to do next. Only commands know their model's path.
std::string missed_lines(const Report& report) {
  std::string text;
  const SiteReport* first = nullptr;
  size_t named = 0;
  for (const SiteReport& site : report.sites) {
    if (site.outcome == Outcome::kFused || ++named > kMostNamed) continue;
    if (first == nullptr) first = &site;
    text += fmt::format("{:<{}}{}\n", name_of(site.outcome), kOutcomeWidth, site_label(site)) +
            wrapped(site.miss_id.empty() ? site_phrase(site) : reason_phrase(site), kOutcomeWidth);
  }
  if (first == nullptr) return {};
  if (named > kMostNamed) text += fmt::format("{} more\n", named - kMostNamed);
  return "\n" + text + (report.input.empty() ? "" : "run: " + explain_words(report.input, first->graph, first->name) + "\n");
}

std::string site_lines(const Report& report) {
  size_t name_width = 0, line_width = 0;
  for (const SiteReport& site : report.sites) {
    name_width = std::max(name_width, site_label(site).size());
    line_width = std::max(line_width, describe(site).line.size());
  }
  constexpr std::string_view kGap = "  ";
  const bool all_fit = kOutcomeWidth + name_width + kGap.size() + line_width <= kColumns;
  std::string text;
  for (const SiteReport& site : report.sites) {
    const SiteText described = describe(site);
    const std::string name = site_label(site);
    text += fmt::format("{:<{}}", name_of(site.outcome), kOutcomeWidth);
    if (all_fit) {
      text += fmt::format("{:<{}}{}{}\n", name, name_width, kGap, described.line) +
              with_hint(described.below, site.miss_id, kOutcomeWidth);
    } else {
      text += name + "\n" + with_hint(described.together, site.miss_id, kOutcomeWidth);
    }
    for (const OtherMiss& other : site.other_misses) text += with_hint("also " + miss_phrase(other), other.id, kOutcomeWidth);
  }
  return text;
}

}  // namespace

std::string to_text(const Report& report, bool with_sites) {
  const size_t most_operators = with_sites ? report.operators.size() : kMostOperators;
  std::string text = sites_line(report) + wrapped(assurance_phrase(report.fused(), count_assumptions(report)), 0) +
                     slower_lines(report) + effect_lines(report) + rewrites_total(report) + model_lines(report);
  for (const std::string& reason : report.not_raised) {
    text += with_hint("opset.raise: " + reason, "opset.raise", 0);
  }
  text += kv_cache_lines(report) + "\n" + table(report, most_operators);
  if (!with_sites) {
    const std::string rewrites = unapplied_rewrite_lines(report, kMostNamed);
    return text + missed_lines(report) + (rewrites.empty() ? "" : "\n" + rewrites);
  }
  if (!report.sites.empty()) text += "\n" + site_lines(report);
  if (!report.rewrites.empty()) text += "\n" + rewrite_lines(report);
  return text;
}

}  // namespace attn_opt
