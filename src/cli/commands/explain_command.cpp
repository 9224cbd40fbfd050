#include <algorithm>
#include <cstdio>
#include <set>

#include "src/cli/cases/case_output.h"
#include "src/cli/color.h"
#include "src/cli/commands/commands.h"
#include "src/cli/options/model_argument.h"
#include "src/cli/options/optimize_arguments.h"
#include "src/cli/trace_log.h"
#include "src/io/check/nearest_name.h"
#include "src/report/miss_manual.h"
#include "src/report/phrases.h"

namespace attn_opt {
namespace {

using Outcome = SiteReport::Outcome;

struct ExplainArguments {
  ModelArgument model;
  std::string node, id, case_out, rule_out;
  CaseBudget budget;
  OptimizeArguments optimize;
  Verbosity verbosity;
};

int rank(Outcome outcome) { return outcome == Outcome::kFused ? 0 : outcome == Outcome::kRefused ? 1 : 2; }

/// Fused sites, refused ones, then misses, the nearest first.
bool is_better(const SiteReport& one, const SiteReport& other) {
  if (rank(one.outcome) != rank(other.outcome)) return rank(one.outcome) < rank(other.outcome);
  return one.outcome == Outcome::kMissed && one.peeled.size() > other.peeled.size();
}

/// Is PLACE called WORD: by its node, with its graph where several branches have one of that name?
bool is_at(const PlaceReport& place, const std::string& word) {
  return place.name == word || place.graph + "/" + place.name == word || place.miss_node == word;
}

/// Is SITE called WORD, also by its module, or was something found there that kept it from being fused?
bool is_about(const SiteReport& site, const std::string& word) {
  return is_at(site, word) || (!site.module.empty() && site.module == word) ||
         std::ranges::any_of(site.other_misses, [&word](const OtherMiss& other) { return other.node == word; });
}

/// Is REWRITE called WORD, or a node that it replaces?
bool is_about(const RewriteReport& rewrite, const std::string& word) {
  return is_at(rewrite, word) || std::ranges::find(rewrite.nodes, word) != rewrite.nodes.end();
}

Status keep_node(Report& report, const std::string& node) {
  std::set<std::string> names;
  const auto keep = [&](auto& places) {
    for (const auto& place : places) names.insert(place.graph == "main" ? place.name : place.graph + "/" + place.name);
    std::erase_if(places, [&node](const auto& place) { return !is_about(place, node); });
  };
  const bool has_rewrites = !report.rewrites.empty();
  keep(report.sites);
  keep(report.rewrites);
  if (!report.sites.empty() || !report.rewrites.empty()) return {};
  const std::string none = has_rewrites ? "no attention and no place of a rewrite is called '" : "no attention is called '";
  return fail(ErrorCode::kUsage, "--node", none + node + "'", suggestion(node, {names.begin(), names.end()}));
}

Expected<int> print_manual(const std::string& id) {
  const std::string text = manual_page(id);
  if (text.empty()) {
    const auto nearest = nearest_name(id, manual_ids());
    return fail(ErrorCode::kUsage, "--id", "there is no miss or precondition '" + id + "'",
                nearest ? "did you mean '" + *nearest + "'?" : "explain MODEL names those of its sites");
  }
  std::fputs((id + "\n\n" + text + "\n").c_str(), stdout);
  return 0;
}

/// The first of PLACES that nothing was written for; null if there is none.
template <class Place>
const Place* first_left(const std::vector<Place>& places) {
  const auto left = std::ranges::find_if(places, [](const Place& place) { return place.outcome != Outcome::kFused; });
  return left == places.end() ? nullptr : &*left;
}

/// Of what is left as it was the first, attention before rewrites; likewise of all if nothing is.
Status write_case_of_one(const Model& before, const Report& report, const ExplainArguments& given) {
  const auto write = [&](const auto& place) { return write_case(before, place, given.optimize, given.case_out, given.budget); };
  if (const SiteReport* site = first_left(report.sites)) return write(*site);
  if (const RewriteReport* rewrite = first_left(report.rewrites)) return write(*rewrite);
  return report.sites.empty() ? write(report.rewrites.front()) : write(report.sites.front());
}

Status write_rule_of_one(const Model& before, const Report& report, const ExplainArguments& given) {
  if (report.sites.empty())
    return fail(ErrorCode::kInvalidInput, "--rule-out", "no attention found", "it writes one that there is");
  const SiteReport* left = first_left(report.sites);
  return write_rule(before, left ? *left : report.sites.front(), given.optimize, given.rule_out);
}

void declare(CLI::App& app, ExplainArguments& given) {
  declare_model(app, "MODEL", given.model);
  app.get_option("MODEL")->required(false);  // --id does without
  app.add_option("--node", given.node,
                 "Only the attention, or the rewrite, of this node (or GRAPH/NODE), or those of this module");
  app.add_option("--id", given.id,
                 "Print what the manual says of a miss, as scores.operator, or of a precondition; without MODEL")
      ->excludes("MODEL");
  app.add_option("--case-out", given.case_out, "Write the smallest case that still misses (of --node, or of the nearest miss)");
  app.add_option("--rule-out", given.rule_out,
                 "Write the attention (of --node, or of the nearest miss) as a rule to be completed");
  app.add_option("--case-seconds", given.budget.seconds,
                 "Time that --case-out may take; the smallest case found by then is written; 0: any")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  takes_size(
      *app.add_option("--case-memory", given.budget.bytes,
                      "Most memory for the constants of a model that --case-out tries, and for verifying it, as 1GB (256MB)"));
  declare_optimize_options(app, given.optimize);
  declare_data_folders(app, given.model.data_folders);
  declare_verbosity(app, given.verbosity);
}

/// Each site and rewrite of REPORT.
void print_explanations(const Report& report) {
  for (const SiteReport& site : report.sites) std::fputs(painted(explain(site) + "\n", stdout).c_str(), stdout);
  for (const std::string& reason : report.not_raised) {
    std::fputs(("nothing can be fused: opset.raise: " + reason + "\n").c_str(), stdout);
  }
  for (const RewriteReport& rewrite : report.rewrites) std::fputs(painted(explain(rewrite) + "\n", stdout).c_str(), stdout);
}

/// Of a model of which nothing is to be said but that: what may be done, and that there is nothing to write.
Expected<int> without_sites(const Report& report, const ExplainArguments& given) {
  const std::string already = already_phrase(report);
  const std::string none = already.empty() ? "no attention found" : "no attention to fuse: " + already;
  if (!given.verbosity.quiet) std::fputs((none + "\n").c_str(), stdout);
  const char* const advice = given.optimize.patterns.empty()
                                 ? "run: attn-opt patterns lists what is looked for; --rules adds rules of your own\n"
                                 : "-vv says why each pattern and rule does not match at each node\n";
  if (already.empty() && !given.verbosity.quiet) std::fputs(advice, stdout);
  for (const auto& [option, path] : {std::pair("--case-out", &given.case_out), std::pair("--rule-out", &given.rule_out)})
    if (!path->empty()) return fail(ErrorCode::kInvalidInput, option, none, "it writes one that there is");
  return 0;
}

Expected<int> explain_sites(ExplainArguments& given, const CLI::App&) {
  set_up_log(given.verbosity);
  if (!given.id.empty()) return print_manual(given.id);
  if (given.model.path.empty()) return fail(ErrorCode::kUsage, "usage", "MODEL is required", "or --id, of a miss");
  ATTN_OPT_TRY(OptimizeOptions options, to_options(given.optimize));
  options.trace = trace_to_log(given.verbosity);
  ATTN_OPT_TRY(Model model, load_valid(given.model));
  const bool writes = !given.case_out.empty() || !given.rule_out.empty();
  const Model before = writes ? model : Model{};
  ATTN_OPT_TRY(Report report, optimize(model, options));
  if (!given.node.empty()) {
    ATTN_OPT_CHECK(keep_node(report, given.node));
  }
  std::ranges::stable_sort(report.sites, is_better);
  if (!given.verbosity.quiet) print_explanations(report);
  if (report.sites.empty() && report.rewrites.empty()) return without_sites(report, given);
  if (!given.rule_out.empty()) {
    ATTN_OPT_CHECK(write_rule_of_one(before, report, given));
  }
  if (!given.case_out.empty()) {
    ATTN_OPT_CHECK(write_case_of_one(before, report, given));
  }
  return 0;
}

}  // namespace

DeclaredCommand explain_command() {
  return declared("attn-opt explain", "Says of every attention in a model how it is fused, or what stands in the way.", declare,
                  explain_sites);
}

}  // namespace attn_opt
