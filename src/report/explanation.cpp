#include <fmt/format.h>

#include "attn_opt/report.h"
#include "src/io/number_text.h"
#include "src/report/drawing/layout.h"
#include "src/report/names.h"
#include "src/report/phrases.h"

namespace attn_opt {
namespace {

using Outcome = SiteReport::Outcome;
constexpr size_t kKeyWidth = 10;

/// "  KEY      TEXT", further lines of TEXT below its first.
std::string entry(const std::string& key, const std::string& text) {
  constexpr size_t kIndent = 2 + kKeyWidth;
  std::string lines = wrapped(text, kIndent);
  if (lines.empty()) return {};
  return lines.replace(0, kIndent, fmt::format("  {:<{}}", key, kKeyWidth));
}

/// Nothing where the operator that was fused made no scores either.
std::string scores_spared(const Effect& effect) {
  return effect.score_bytes == Dim(0) ? "" : fmt::format("{} bytes of scores a run; ", effect.score_bytes.str());
}

/// ": what the condition is about"; of sizes that are not to be empty their names are the detail.
std::string detail_of(const Precondition& one) {
  if (one.detail.empty()) return {};
  if (one.id != kSizesNotEmpty) return ": " + one.detail;
  return ": " + one.detail + (one.detail.find(',') == std::string::npos ? " is never 0" : " are never 0");
}

std::string recognised(const SiteReport& site) {
  std::string form = form_phrase(site) + ", scale " + number_text(site.scale);
  if (site.softcap != 0) form += ", softcap " + number_text(site.softcap);
  std::string text = entry("form", form) + entry("mask", site.mask_reading);
  for (const Precondition& one : site.preconditions) {
    text += entry(std::string(state_of(one)), one.id + detail_of(one));
  }
  if (site.effect && site.effect->products > 1)
    text +=
        entry("slower", fmt::format("in ONNX Runtime on the CPU: one of {} products of a softmax with V, each of which makes "
                                    "the scores again (--target ort leaves it)",
                                    site.effect->products));
  if (site.effect)
    text += entry("effect", fmt::format("{}nodes: {} become {}", scores_spared(*site.effect), site.effect->nodes_removed,
                                        site.effect->nodes_added));
  if (!site.verification) return text;
  text += entry("verdict", verdict_phrase(site));
  if (site.miss_id.empty() && site.verification->verdict != Verdict::kVerified)
    text += entry("reason", site.verification->reason) +
            entry("hint", hint_of(std::string(miss_id_of(site.verification->verdict))));
  const std::string conditions = joined(site.verification->explained_by, " or ");
  return text + entry("explained", conditions.empty() ? "" : "rows differ only where " + conditions + " fails");
}

/// Where and at what it stopped; of an operator alone also on which part of the way.
std::string stop_phrase(const SiteReport& site) {
  const std::string way = way_of(site.miss_id, site.miss_op, site.found);
  return way.empty() || site.miss_node.empty() ? miss_phrase(site) : miss_phrase(site.miss_node, site.miss_op, way);
}

/// The id is in the hint, if the manual has it.
std::string stopped(const SiteReport& site) {
  const std::string hint = hint_of(site.miss_id);
  return entry("stopped", stop_phrase(site)) + (hint.empty() ? entry("miss", site.miss_id) : entry("hint", hint));
}

}  // namespace

std::string explain(const SiteReport& site) {
  const std::string outcome = site.outcome == Outcome::kMissed ? "not fused" : std::string(name_of(site.outcome));
  std::string text = site_label(site) + "  " + outcome;
  if (!site.pattern.empty()) text += "  [" + site.pattern + "]";
  text += "\n" + entry("peeled", joined(site.peeled, " -> "));
  if (site.outcome != Outcome::kMissed) text += recognised(site);
  if (!site.miss_id.empty()) text += stopped(site);
  for (const OtherMiss& other : site.other_misses) text += entry("also", miss_phrase(other)) + entry("hint", hint_of(other.id));
  return text;
}

}  // namespace attn_opt
