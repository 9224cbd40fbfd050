#include "src/optimizer/rewriting.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <unordered_set>

#include "attn_opt/internal/emit.h"
#include "attn_opt/internal/opset_raise.h"
#include "attn_opt/internal/verifier.h"
#include "src/graph/operator_name.h"
#include "src/optimizer/output_shapes.h"
#include "src/optimizer/rewrite_edit.h"
#include "src/optimizer/sites.h"
#include "src/report/names.h"
#include "src/rewrite/operator_check.h"
#include "src/verify/seconds.h"

namespace attn_opt {
namespace {

using Clock = std::chrono::steady_clock;
using Outcome = SiteReport::Outcome;

/// A place where a rewrite matched.
struct Candidate {
  const Rewrite* rewrite;
  Node* node;
  RewriteMatch match;
  RewriteReport line;
};

/// Where MISS is that a node in front of PLACE would read what is made there: that node, or the one in PLACE's graph whose body
/// it is in. Null for any other miss.
Node* reader_before(const Miss& miss, const Node& place) {
  const Node* reader = miss.id == kRewriteOrder && miss.node ? place.graph->holder_of(*miss.node) : nullptr;
  if (!reader || reader->placement != Placement::kOfFile || reader->position >= place.position) return nullptr;
  const auto& nodes = place.graph->nodes();
  const auto found = std::ranges::find(nodes, reader);
  return found == nodes.end() ? nullptr : *found;
}

/// One pass over the model as it is now: everything is matched, and then applied as far as earlier ones left it.
class Round {
 public:
  /// WRITTEN: names of the nodes that rewrites made so far.
  Round(Model& model, const OptimizeOptions& options, std::unique_ptr<ModelGraph> view, std::set<std::string>& written,
        int& left, Report& report)
      : options_(options),
        view_(std::move(view)),
        facts_(*view_, *model.tensors),
        written_(written),
        left_(left),
        report_(report) {
    if (options.verify == VerifyMode::kOff) return;
    VerifyOptions verification = options.verification;
    verification.share_verdicts = options.verify != VerifyMode::kAllSites;
    verifier_.emplace(MatchContext{*view_, facts_}, *model.tensors, verification);
  }

  /// How many rewrites were committed.
  int run(const std::vector<ChosenRewrite>& chosen) {
    const auto start = Clock::now();
    const double verified_before = report_.seconds_verify;
    for (const ChosenRewrite& one : chosen) find(*one.rewrite);
    if (!candidates_.empty()) apply_all();
    report_.seconds_match += seconds_since(start) - (report_.seconds_verify - verified_before);
    return committed_;
  }

 private:
  void find(const Rewrite& rewrite) {
    for (const auto& graph : view_->graphs()) {
      if (graph->outermost().function()) continue;
      for (Node* node : graph->nodes())
        if (rewrite.is_anchor(*node) && !node->is_dead()) try_at(rewrite, *node);
    }
  }

  Matched<RewriteMatch> match(const Rewrite& rewrite, const Node& node) {
    RewriteContext context{*view_, facts_};
    return guarded(node, [&] { return rewrite.match(node, context); });
  }

  void try_at(const Rewrite& rewrite, Node& node) {
    const auto start = Clock::now();
    Matched<RewriteMatch> matched = match(rewrite, node);
    if (!matched && options_.trace && !matched.error().found.empty()) options_.trace(rewrite.name(), node, matched.error());
    // That a rewrite does not fit what was written for another place is no news of the model.
    if (!matched && (matched.error().id == kNoMatch || written_.contains(node.label()))) return;
    RewriteReport line;
    enter_place(node, rewrite.name(), line);
    line.match_seconds = seconds_since(start);
    if (matched) {
      line.peeled = matched->peeled;
      candidates_.push_back({&rewrite, &node, *std::move(matched), std::move(line)});
    } else {
      enter_miss(matched.error(), Outcome::kMissed, line);
      report_.rewrites.push_back(std::move(line));
    }
  }

  void apply_all() {
    auto raise = plan_raise(*view_, facts_, view_->edit_opset(), !is_strict());
    if (!raise) return refuse_all(raise.error());
    for (Candidate& candidate : candidates_) {
      if (left_ == 0)
        candidate_refused(candidate, {"site.stopped", nullptr, "--stop-after was reached", {}});
      else if (is_as_matched(candidate))
        apply_if_accepted(candidate);
    }
    if (committed_ == 0) return;
    declare_output_shapes(*view_, facts_);
    raise->apply(*view_);
    view_->compact();
  }

  bool is_strict() const { return options_.strict || options_.exact; }

  /// False where others of this round took something away: the next round looks again.
  bool is_as_matched(Candidate& candidate) {
    if (candidate.node->removed) return false;
    if (committed_ == 0) return true;
    auto again = match(*candidate.rewrite, *candidate.node);
    if (!again) return false;
    candidate.match = *std::move(again);
    return true;
  }

  void apply_if_accepted(Candidate& candidate) {
    std::string why = is_strict() ? candidate.match.rounds_otherwise : "";
    if (options_.exact && why.empty()) why = candidate.match.makes_numbers_of_nan;
    if (why.empty()) return apply(candidate);
    candidate_refused(candidate, {"strict.assumed", candidate.node, why, candidate.line.peeled});
  }

  /// The edit of CANDIDATE in front of PLACE.
  Matched<Emission> emission_at(const Candidate& candidate, Node& place) {
    Emission emission{.edit = Edit(*view_, place), .computed = candidate.match.computed};
    ATTN_OPT_MATCH(emission.removed, fill_edit(*candidate.rewrite, candidate.match, *candidate.node, shared_, emission.edit));
    ATTN_OPT_DONE(check_operators(emission.edit, facts_));
    ATTN_OPT_DONE(check_new_nodes(emission.edit, facts_));
    return emission;
  }

  /// The edit of CANDIDATE where the match says; otherwise in front of its node, or of what reads a replaced value before that.
  Matched<Emission> emission_of(const Candidate& candidate) {
    if (candidate.match.insert_before) return emission_at(candidate, *candidate.match.insert_before);
    Node* place = candidate.node;
    while (true) {
      auto emission = emission_at(candidate, *place);
      Node* const earlier = emission ? nullptr : reader_before(emission.error(), *place);
      if (!earlier) return emission;
      place = earlier;
    }
  }

  /// Without constants: the first place that needs one has it, and equal places are to read alike. Of constants alone all.
  static std::vector<std::string> operators_of(std::span<Node* const> nodes) {
    const auto is_constant = [](const Node* node) { return node->is("Constant"); };
    const bool are_constants = std::ranges::all_of(nodes, is_constant);
    std::vector<std::string> operators;
    for (const Node* node : nodes)
      if (are_constants || !is_constant(node)) operators.push_back(operator_name(*node));
    return operators;
  }

  void apply(Candidate& candidate) {
    auto filled = guarded(*candidate.node, [&] { return emission_of(candidate); });
    if (!filled) return candidate_refused(candidate, filled.error());
    Emission emission = *std::move(filled);
    // What an edit of this round made is of no file yet; verification takes it as it is. The next round sees it like any other.
    if (std::ranges::any_of(emission.removed, [](const Node* node) { return node->placement != Placement::kOfFile; })) return;
    for (const Node* node : emission.removed) candidate.line.nodes.push_back(node->label());
    candidate.line.operators = operators_of(emission.edit.nodes());
    const std::string commit_name = candidate.line.pattern + " at " + candidate.line.name;
    if (options_.leave.contains(commit_name))
      return candidate_refused(
          candidate, {"site.invalid", candidate.node, "with it the model is not valid any more", candidate.line.peeled});
    if (!is_verified(emission, candidate)) return;
    for (const Node* node : emission.edit.nodes()) written_.insert(node->label());
    emission.edit.commit(shared_);
    ++committed_;
    --left_;
    if (options_.on_commit) options_.on_commit(*view_, commit_name);
    candidate.line.outcome = Outcome::kFused;
    report_.rewrites.push_back(std::move(candidate.line));
  }

  bool is_verified(const Emission& emission, Candidate& candidate) {
    if (!verifier_) return true;
    const auto verification = guarded(*candidate.node, [&] { return Matched<Verification>(verifier_->verify(emission)); });
    if (!verification) return candidate_refused(candidate, verification.error()), false;
    candidate.line.verification = *verification;
    report_.seconds_verify += verification->seconds;
    if (verification->verdict == Verdict::kVerified) return true;
    if (verification->verdict == Verdict::kUnverified && options_.allow_unverified && !is_strict()) return true;
    candidate_refused(candidate, {std::string(miss_id_of(verification->verdict)), candidate.node, verification->reason,
                                  candidate.line.peeled});
    return false;
  }

  void candidate_refused(Candidate& candidate, const Miss& miss) {
    enter_miss(miss, Outcome::kRefused, candidate.line);
    report_.rewrites.push_back(std::move(candidate.line));
  }

  void refuse_all(const Miss& miss) {
    for (Candidate& candidate : candidates_) candidate_refused(candidate, miss);
    const std::string reason = (miss.node ? "'" + miss.node->label() + "' (" + miss.node->op() + "): " : "") + miss.found;
    if (std::ranges::find(report_.not_raised, reason) == report_.not_raised.end()) report_.not_raised.push_back(reason);
  }

  const OptimizeOptions& options_;
  std::unique_ptr<ModelGraph> view_;
  Facts facts_;
  std::optional<Verifier> verifier_;
  SharedNodes shared_;
  std::vector<Candidate> candidates_;
  std::set<std::string>& written_;
  int& left_;
  Report& report_;
  int committed_ = 0;
};

}  // namespace

Status rewrite_model(Model& model, const std::vector<ChosenRewrite>& chosen, const OptimizeOptions& options, int& left,
                     Report& report) {
  if (chosen.empty()) return {};
  const auto first = static_cast<std::ptrdiff_t>(report.rewrites.size());
  std::set<std::string> written;
  for (int round = 0; round < options.most_rounds; ++round) {
    report.rewrites.erase(std::remove_if(report.rewrites.begin() + first, report.rewrites.end(),
                                         [](const RewriteReport& line) { return line.outcome != Outcome::kFused; }),
                          report.rewrites.end());
    ATTN_OPT_TRY(auto view, ModelGraph::create(model.proto));
    view->set_edit_opset(options.opset);
    const int committed = Round(model, options, std::move(view), written, left, report).run(chosen);
    report.changed = report.changed || committed > 0;
    if (committed == 0 || left == 0) return {};
  }
  report.has_rewrites_left = true;
  return {};
}

void merge(Report&& rewritten, Report& report) {
  report.changed = report.changed || rewritten.changed;
  report.rewrites = std::move(rewritten.rewrites);
  report.has_rewrites_left = rewritten.has_rewrites_left;
  report.seconds_match += rewritten.seconds_match;
  report.seconds_verify += rewritten.seconds_verify;
  for (std::string& reason : rewritten.not_raised)
    if (std::ranges::find(report.not_raised, reason) == report.not_raised.end()) report.not_raised.push_back(std::move(reason));
}

}  // namespace attn_opt
