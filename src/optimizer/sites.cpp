#include "src/optimizer/sites.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <numeric>
#include <set>
#include <span>
#include <unordered_set>
#include <utility>

#include "src/graph/operator_name.h"
#include "src/graph/provenance.h"
#include "src/optimizer/local_attention.h"
#include "src/report/names.h"
#include "src/verify/seconds.h"

namespace attn_opt {
namespace {

using Clock = std::chrono::steady_clock;

SiteReport reported(const Node& anchor, size_t part, const Pattern& pattern) {
  SiteReport site;
  enter_place(anchor, pattern.name(), site);
  if (part > 0) site.name = anchor.outputs[part]->name;
  Provenance provenance = provenance_of(anchor);
  site.module = std::move(provenance.module);
  site.source_file = std::move(provenance.source_file);
  site.source_line = provenance.source_line;
  return site;
}

/// True within a function that stands for attention itself. (Where its call is to become another, it was inlined before.)
bool is_in_local_attention(const Graph& graph) {
  const onnx::FunctionProto* function = graph.outermost().function();
  return function && is_local_attention(*function);
}

void try_pattern(const Pattern& pattern, Node& node, size_t part, MatchContext& context, Report& report, FoundSites& found,
                 const SiteListeners& listeners) {
  const auto start = Clock::now();
  Matched<Match> match = match_part(pattern, node, part, context);
  if (!match && listeners.trace && !match.error().found.empty()) listeners.trace(pattern.name(), node, match.error());
  if (match ? node.is_dead() : match.error().id == kNotAttention) return;
  SiteReport site = reported(node, part, pattern);
  site.match_seconds = seconds_since(start);
  if (match && node.graph->function()) match = missed("site.in-function", &node, "a model-local function is not rewritten");
  if (match) {
    enter_match(*match, site);
    found.matched.push_back({*std::move(match), &pattern, report.sites.size(), part});
  } else {
    enter_miss(match.error(), SiteReport::Outcome::kMissed, site);
    if (listeners.graphs) site.before = listeners.graphs->around(node, match.error().node);
  }
  report.sites.push_back(std::move(site));
  found.places.push_back({&node, part});
}

using Outcome = SiteReport::Outcome;

bool got_further(const SiteReport& one, const SiteReport& other) {
  if (one.outcome != other.outcome) return one.outcome == Outcome::kRefused;
  return one.outcome == Outcome::kMissed && one.peeled.size() > other.peeled.size();
}

OtherMiss other_miss(const SiteReport& site) {
  if (!site.miss_id.empty()) return {site.pattern, site.miss_id, site.miss_node, site.miss_op, site.found, site.peeled};
  return {site.pattern, std::string(miss_id_of(site.verification->verdict)), site.name, site.op, site.verification->reason,
          site.peeled};
}

/// SITE and LINE are of one node, and neither was fused.
void merge(SiteReport&& site, SiteReport& line) {
  const double seconds = line.match_seconds + site.match_seconds;
  if (got_further(site, line)) {
    std::swap(site, line);
    line.other_misses.push_back(other_miss(site));
    line.other_misses.insert(line.other_misses.end(), site.other_misses.begin(), site.other_misses.end());
  } else {
    line.other_misses.push_back(other_miss(site));
  }
  line.match_seconds = seconds;
}

/// The values of the model that SDPA reads.
std::unordered_set<const Value*> operands_of(const Sdpa& sdpa) {
  std::vector<const Value*> pending = {sdpa.nonpad_kv_seqlen};
  for (const Operand* operand : {&sdpa.q, &sdpa.k, &sdpa.v})
    for (const OperandView& view : operand->views) pending.insert(pending.end(), {view.value, view.past});
  for (const ScoreTerm& term : sdpa.terms) pending.push_back(term.value);
  for (const TensorScale& scale : sdpa.tensor_scales) pending.push_back(scale.value);
  for (const OutputStep& step : sdpa.output_steps) pending.insert(pending.end(), step.operands.begin(), step.operands.end());
  std::unordered_set<const Value*> operands;
  while (!pending.empty()) {
    const Value* value = pending.back();
    pending.pop_back();
    if (!value || !operands.insert(value).second || !value->is_new || !value->producer) continue;
    pending.insert(pending.end(), value->producer->inputs.begin(), value->producer->inputs.end());
  }
  return operands;
}

/// The nodes between the operands and the outputs of SDPA; none where a way from the outputs upward leads past the operands.
std::unordered_set<const Node*> nodes_of(const Sdpa& sdpa) {
  constexpr size_t kMost = 1000;
  const std::unordered_set<const Value*> operands = operands_of(sdpa);
  std::unordered_set<const Node*> nodes;
  std::vector<const Value*> pending;
  for (const OutputView& output : sdpa.outputs) pending.push_back(output.value);
  while (!pending.empty()) {
    const Value* value = pending.back();
    pending.pop_back();
    if (!value || value->initializer || operands.contains(value)) continue;
    if (!value->producer || nodes.size() == kMost) return {};
    if (nodes.insert(value->producer).second)
      pending.insert(pending.end(), value->producer->inputs.begin(), value->producer->inputs.end());
  }
  return nodes;
}

/// For each line of REPORT the refused one that a pattern found around its node, which is the same attention; else its own
/// number.
std::vector<size_t> lines_around(const FoundSites& found, const Report& report) {
  std::vector<size_t> around(report.sites.size());
  std::iota(around.begin(), around.end(), size_t{0});
  for (const MatchedSite& site : found.matched) {
    if (report.sites[site.report].outcome != Outcome::kRefused) continue;
    const std::unordered_set<const Node*> nodes = nodes_of(site.match.sdpa);
    for (size_t i = 0; i < around.size(); ++i)
      if (report.sites[i].outcome == Outcome::kMissed && found.places[i] != found.places[site.report] &&
          nodes.contains(found.places[i].anchor))
        around[i] = site.report;
  }
  return around;
}

/// The numbers of the lines of REPORT that are no sites any more: another makes their output, or they only join what others
/// make.
std::unordered_set<size_t> covered_lines(const FoundSites& found, const Report& report) {
  std::unordered_set<size_t> covered;
  for (const MatchedSite& site : found.matched) {
    const SiteReport& line = report.sites[site.report];
    if (line.miss_id == kNotAttention && (site.match.insert_before->removed || line.op == "Concat"))
      covered.insert(site.report);
  }
  return covered;
}

}  // namespace

void merge_lines(const FoundSites& found, Report& report) {
  const std::vector<size_t> around = lines_around(found, report);
  for (size_t i = 0; i < around.size(); ++i)
    if (around[i] != i) merge(std::move(report.sites[i]), report.sites[around[i]]);
  const std::unordered_set<size_t> covered = covered_lines(found, report);
  std::set<Place> fused;
  for (size_t i = 0; i < report.sites.size(); ++i)
    if (report.sites[i].outcome == Outcome::kFused) fused.insert(found.places[i]);
  std::vector<SiteReport> lines;
  Place last{nullptr, 0};  // patterns are tried place by place
  for (size_t i = 0; i < report.sites.size(); ++i) {
    SiteReport& site = report.sites[i];
    const Place& place = found.places[i];
    if (around[i] != i) continue;
    if (site.outcome == Outcome::kFused) {
      lines.push_back(std::move(site));
    } else if (!place.anchor->removed && !fused.contains(place) && !covered.contains(i)) {
      if (place == last)
        merge(std::move(site), lines.back());
      else
        lines.push_back(std::move(site));
      last = place;
    }
  }
  report.sites = std::move(lines);
}

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

void enter_match(const Match& match, SiteReport& line) {
  line.peeled = match.peeled;
  line.preconditions = match.sdpa.preconditions;
  line.scale = match.sdpa.scale;
  line.softcap = match.sdpa.softcap;
  if (match.sdpa.type != onnx::TensorProto::UNDEFINED) line.type = type_name(match.sdpa.type);
}

void enter_place(const Node& node, std::string_view pattern, PlaceReport& line) {
  line.name = node.label();
  line.op = operator_name(node);
  line.graph = graph_path(*node.graph);
  line.pattern = std::string(pattern);
}

void enter_miss(const Miss& miss, PlaceReport::Outcome outcome, PlaceReport& line) {
  line.outcome = outcome;
  line.miss_id = miss.id;
  line.found = miss.found;
  if (!miss.peeled.empty()) line.peeled = miss.peeled;
  if (!miss.node) return;
  line.miss_node = miss.node->label();
  line.miss_op = operator_name(*miss.node);
}

std::string graph_path(const Graph& graph) {
  if (graph.function()) return "function " + graph.function()->name();
  if (!graph.parent()) return "main";
  const Node& owner = *graph.owner();
  std::string body = "body";
  size_t index = 0;
  for (const auto& attribute : owner.proto->attribute()) {
    const int graphs = attribute.graphs_size() + (attribute.has_g() ? 1 : 0);
    for (int i = 0; i < graphs; ++i, ++index)
      if (owner.bodies[index] == &graph) body = attribute.name();
  }
  return graph_path(*graph.parent()) + "/" + owner.label() + ":" + body;
}

Expected<std::vector<const Pattern*>> chosen_patterns(const OptimizeOptions& options) {
  std::vector<const Pattern*> all, chosen;
  for (const auto& pattern : patterns()) all.push_back(pattern.get());
  for (const auto& rule : options.rules) all.push_back(rule.get());
  const auto is_called = [](const std::string& name) { return [&name](const auto* one) { return one->name() == name; }; };
  std::vector<const Rewrite*> around;
  for (const auto& rewrite : rewrites()) around.push_back(rewrite.get());
  for (const auto& rewrite : options.rewrites) around.push_back(rewrite.get());
  for (const auto& names : {options.only, options.disable})
    for (const std::string& name : names)
      if (std::ranges::none_of(all, is_called(name)) && std::ranges::none_of(around, is_called(name)))
        return fail(ErrorCode::kUsage, "pattern '" + name + "'", "there is no such pattern", "see `attn-opt patterns`");
  std::ranges::copy_if(all, std::back_inserter(chosen), [&](const Pattern* pattern) {
    return (options.only.empty() || contains(options.only, pattern->name())) && !contains(options.disable, pattern->name());
  });
  std::ranges::stable_sort(chosen, std::ranges::greater(), [&](const Pattern* pattern) {
    const auto given = options.priorities.find(std::string(pattern->name()));
    return given == options.priorities.end() ? kAttentionPriority : given->second;
  });
  return chosen;
}

FoundSites find_sites(MatchContext& context, const std::vector<const Pattern*>& chosen, Report& report,
                      const SiteListeners& listeners) {
  FoundSites found;
  std::vector<MatchedSite>& matched = found.matched;
  for (const auto& graph : context.view.graphs()) {
    if (is_in_local_attention(*graph)) continue;
    const size_t first = matched.size();
    for (Node* node : graph->nodes()) {
      if (node->removed) continue;
      for (const Pattern* pattern : chosen) {
        if (!pattern->is_anchor(*node)) continue;
        for (size_t part = 0; part < pattern->parts(*node); ++part)
          try_pattern(*pattern, *node, part, context, report, found, listeners);
      }
    }
    // What one site shares with a later one must stand above it, whatever the order of their anchors. Of two that are at one
    // place that of the pattern that comes first is tried first.
    const std::span<MatchedSite> of_graph(matched.begin() + static_cast<std::ptrdiff_t>(first), matched.end());
    const auto place = [&chosen](const MatchedSite& site) {
      return std::pair(site.match.insert_before->position, std::ranges::find(chosen, site.pattern) - chosen.begin());
    };
    // Most are in order, and sorting moves them all.
    if (!std::ranges::is_sorted(of_graph, {}, place)) std::ranges::stable_sort(of_graph, {}, place);
  }
  return found;
}

}  // namespace attn_opt
