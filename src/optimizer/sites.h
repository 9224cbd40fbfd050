// The places where a pattern may match, and what came of them.
#pragma once

#include <exception>
#include <map>
#include <string>
#include <vector>

#include "attn_opt/optimizer.h"
#include "src/optimizer/site_graphs.h"

namespace attn_opt {

/// A pattern that matched, and its line in the report.
struct MatchedSite {
  Match match;
  const Pattern* pattern = nullptr;
  size_t report = 0;
  size_t part = 0;  ///< of what its anchor makes
  /// Sizes that it would have to take for equal, had it not been described without; empty if it is described as usual.
  std::string equal_sizes = {};
};

/// As OptimizeOptions::trace.
using MissTrace = decltype(OptimizeOptions::trace);

/// True if NAME is one of NAMES.
bool contains(const std::vector<std::string>& names, std::string_view name);

/// Enters what MATCH recognised.
void enter_match(const Match& match, SiteReport& line);

/// A part of what a node makes at which a pattern looked.
struct Place {
  const Node* anchor;
  size_t part;

  auto operator<=>(const Place&) const = default;
};

struct FoundSites {
  std::vector<MatchedSite> matched;  ///< in the order in which their nodes can be written: by graph, then by place in it
  std::vector<Place> places;         ///< of each line of the report
};

/// The patterns that ONLY and DISABLE leave, by their PRIORITIES. Error: kUsage for a name that no pattern has.
Expected<std::vector<const Pattern*>> chosen_patterns(const OptimizeOptions& options);

/// Who is told of what does not match.
struct SiteListeners {
  MissTrace trace = {};          ///< called with every condition that failed
  SiteGraphs* graphs = nullptr;  ///< draws what is missed
};

/// Tries every pattern at every node of the main graph and the bodies, and enters what is attention into REPORT.
FoundSites find_sites(MatchContext& context, const std::vector<const Pattern*>& chosen, Report& report,
                      const SiteListeners& listeners = {});

/// Leaves a line for each place: those that fused it, or what is in the way of the pattern that got furthest, with the misses
/// of the others. Nodes that were fused from elsewhere have none.
void merge_lines(const FoundSites& found, Report& report);

/// The id of a miss that is a defect of attn-opt.
inline constexpr std::string_view kDefect = "internal.defect";

/// What STEP, which returns a Matched of one site's ANCHOR, makes; where it throws, which is a defect of attn-opt, a miss of
/// the id kDefect. The model is untouched by such a step: recognising and writing make data.
template <class Step>
auto guarded(const Node& anchor, Step step) -> decltype(step()) {
  try {
    return step();
  } catch (const std::exception& defect) {
    return missed(std::string(kDefect), &anchor, defect.what());
  }
}

/// What PATTERN recognises of the part number PART of what ANCHOR makes; misses as those of guarded().
inline Matched<Match> match_part(const Pattern& pattern, Node& anchor, size_t part, MatchContext& context) {
  context.part = part;
  return guarded(anchor, [&] { return pattern.match(anchor, context); });
}

/// Enters NODE, at which PATTERN or a rewrite of that name looked, into a line of the report.
void enter_place(const Node& node, std::string_view pattern, PlaceReport& line);
/// Enters MISS into a line of the report that is no fusion: kMissed or kRefused.
void enter_miss(const Miss& miss, PlaceReport::Outcome outcome, PlaceReport& line);

/// "main", or the way through bodies: "main/if_1:then_branch".
std::string graph_path(const Graph& graph);

}  // namespace attn_opt
