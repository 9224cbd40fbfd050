#include "src/report/rewrites.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/report/drawing/layout.h"
#include "src/report/names.h"
#include "src/report/phrases.h"

namespace attn_opt {
namespace {

using Outcome = SiteReport::Outcome;
constexpr size_t kRewriteOutcomeWidth = 11;

std::string change_phrase(const RewriteReport& rewrite) {
  const size_t nodes = rewrite.nodes.size();
  const std::string written = rewrite.operators.empty() ? "none" : joined(rewrite.operators, ", ");
  return fmt::format("{} node{} become{} {}", nodes, nodes == 1 ? "" : "s", nodes == 1 ? "s" : "", written);
}

std::string lines_about(const RewriteReport& rewrite) {
  return fmt::format("{:<{}}{}\n", outcome_of(rewrite), kRewriteOutcomeWidth, site_name(rewrite)) +
         wrapped(rewrite_phrase(rewrite), kRewriteOutcomeWidth);
}

}  // namespace

std::string_view outcome_of(const RewriteReport& rewrite) {
  return rewrite.outcome == Outcome::kFused ? "rewritten" : name_of(rewrite.outcome);
}

std::string rewrite_phrase(const RewriteReport& rewrite) {
  if (!rewrite.miss_id.empty()) return rewrite.pattern + ": " + rewrite.miss_id + " " + miss_phrase(rewrite);
  return rewrite.pattern + ": " + change_phrase(rewrite) + ", " + short_verdict(rewrite);
}

int count_of_rewrites(const Report& report, Outcome outcome) {
  return static_cast<int>(std::ranges::count(report.rewrites, outcome, &RewriteReport::outcome));
}

std::string rewrites_total(const Report& report) {
  if (report.rewrites.empty()) return {};
  const auto verified = std::ranges::count_if(report.rewrites, [](const RewriteReport& rewrite) {
    return rewrite.outcome == Outcome::kFused && rewrite.verification && rewrite.verification->verdict == Verdict::kVerified;
  });
  return fmt::format("rewrites: {} applied ({} verified), {} refused, {} missed{}\n", report.rewritten(), verified,
                     count_of_rewrites(report, Outcome::kRefused), count_of_rewrites(report, Outcome::kMissed),
                     report.has_rewrites_left ? "; the rounds were not enough, and more may be left" : "");
}

std::string rewrite_lines(const Report& report) {
  std::string text;
  for (const RewriteReport& rewrite : report.rewrites) text += lines_about(rewrite);
  return text;
}

std::string unapplied_rewrite_lines(const Report& report, size_t most) {
  std::string text;
  size_t found = 0;
  for (const RewriteReport& rewrite : report.rewrites)
    if (rewrite.outcome != Outcome::kFused && ++found <= most) text += lines_about(rewrite);
  return found <= most ? text : text + fmt::format("{} more\n", found - most);
}

std::string explain(const RewriteReport& rewrite) {
  std::string text = fmt::format("{}  {}  [{}]\n", site_name(rewrite), outcome_of(rewrite), rewrite.pattern);
  const auto entry = [&text](std::string_view key, const std::string& what) {
    constexpr size_t kIndent = 12;
    std::string lines = wrapped(what, kIndent);
    if (!lines.empty()) text += lines.replace(0, kIndent, fmt::format("  {:<10}", key));
  };
  entry("peeled", joined(rewrite.peeled, " -> "));
  entry("nodes", joined(rewrite.nodes, ", "));
  entry("written", joined(rewrite.operators, ", "));
  if (rewrite.verification) entry("verdict", verdict_phrase(rewrite));
  if (rewrite.miss_id.empty()) return text;
  entry("stopped", miss_phrase(rewrite));
  const std::string hint = hint_of(rewrite.miss_id);
  entry(hint.empty() ? "miss" : "hint", hint.empty() ? rewrite.miss_id : hint);
  return text;
}

}  // namespace attn_opt
