#include "src/report/phrases.h"

#include <fmt/format.h>

#include "src/report/drawing/layout.h"
#include "src/report/names.h"

namespace attn_opt {
namespace {

std::string heads_phrase(const SiteReport& site) {
  if (site.q_heads == 0) return site.kv_heads == 0 ? "" : fmt::format(", {} key/value heads", site.kv_heads);
  if (site.kv_heads == 0 || site.kv_heads == site.q_heads) return fmt::format(", {} heads", site.q_heads);
  return fmt::format(", {} heads on {}", site.q_heads, site.kv_heads);
}

/// WORD as a POSIX shell reads it.
std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._/+:@%,=";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

/// ", 0.4 ulp"; nothing where the formula is wrong already, behind which types are not compared.
std::string ulp_phrase(const Verification& result) {
  const bool is_measured = result.verdict == Verdict::kVerified || result.type_difference_ulp > 0;
  return is_measured ? fmt::format(", {:.2g} ulp", result.type_difference_ulp) : "";
}

bool has_differences(const PlaceReport& place) {
  return place.verification && place.verification->verdict != Verdict::kUnverified;
}

}  // namespace

std::string site_name(const PlaceReport& place) {
  const bool nested = !place.graph.empty() && place.graph != "main";
  return printable(nested ? place.graph + "/" + place.name : place.name);
}

std::string place_phrase(const std::string& name, const std::string& module, const std::string& source_file,
                         int64_t source_line) {
  const std::string line =
      source_file.empty() ? "" : fmt::format("({}:{})", source_file.substr(source_file.find_last_of("/\\") + 1), source_line);
  const bool is_said = module.empty() || name.starts_with('/');
  return is_said || line.empty() ? (is_said ? line : module) : module + " " + line;
}

std::string site_label(const SiteReport& site) {
  const std::string place = place_phrase(site.name, site.module, site.source_file, site.source_line), name = site_name(site);
  return place.empty() ? name : printable(place) + "  " + name;
}

std::string explain_words(const std::string& model, const std::string& graph, const std::string& name) {
  return "attn-opt explain " + shell_word(model) + " --node " +
         shell_word(graph.empty() || graph == "main" ? name : graph + "/" + name);
}

std::string form_phrase(const SiteReport& site) {
  return (site.form.empty() ? "not written" : site.form) + heads_phrase(site) + (site.past ? ", with past" : "") +
         (site.is_causal ? ", causal" : "");
}

std::string short_verdict(const PlaceReport& place) {
  if (!has_differences(place)) return verdict_phrase(place);
  const Verification& result = *place.verification;
  return fmt::format("{} ({:.2g}{})", name_of(result.verdict), result.algebra_difference, ulp_phrase(result));
}

std::string already_phrase(const Report& report) {
  const int count = report.attention_nodes;
  if (count == 0) return {};
  return count == 1 ? "1 is an attention operator already" : fmt::format("{} are attention operators already", count);
}

std::string verdict_phrase(const PlaceReport& place) {
  if (!place.verification) return "not verified";
  const Verification& result = *place.verification;
  if (!has_differences(place)) return std::string(name_of(result.verdict));
  return fmt::format("{} (algebra {:.2g}{}, {} draw{}{})", name_of(result.verdict), result.algebra_difference,
                     ulp_phrase(result), result.draws, result.draws == 1 ? "" : "s", result.shared ? ", as an equal site" : "");
}

std::string miss_phrase(const std::string& node, const std::string& op, const std::string& found) {
  if (node.empty()) return "at an input of the graph: " + found;
  return fmt::format("at {} ({}): {}", printable(node), op, found);
}

std::string miss_phrase(const PlaceReport& place) { return miss_phrase(place.miss_node, place.miss_op, place.found); }

std::string miss_phrase(const OtherMiss& miss) {
  return fmt::format("[{}] {} {}", miss.pattern, miss.id, miss_phrase(miss.node, miss.op, miss.found));
}

std::string way_of(const std::string& miss_id, const std::string& op, const std::string& found) {
  if (op.empty() || (op != found && !op.ends_with("::" + found))) return {};
  if (miss_id == "scores.operator") return "between Q·Kᵀ and the softmax";
  return miss_id == "probabilities.operator" ? "between the softmax and the product with V" : "";
}

std::string reason_phrase(const std::string& name, const std::string& id, const std::string& node, const std::string& op,
                          const std::string& found) {
  const std::string at = node.empty() || node == name ? "" : " at '" + node + "'";
  const std::string way = way_of(id, op, found);
  if (!way.empty()) return op + at + " " + way + " [" + id + "]";
  return found + at + (op.empty() || op == found ? "" : " (" + op + ")") + " [" + id + "]";
}

std::string reason_phrase(const SiteReport& site) {
  return reason_phrase(site.name, site.miss_id, site.miss_node, site.miss_op, site.found);
}

std::string site_phrase(const SiteReport& site) {
  if (!site.miss_id.empty()) return miss_phrase(site);
  const std::string reason = site.verification ? site.verification->reason : "";
  return form_phrase(site) + ", " + short_verdict(site) + (reason.empty() ? "" : ": " + reason);
}

}  // namespace attn_opt
