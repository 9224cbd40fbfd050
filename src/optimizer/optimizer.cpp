#include "attn_opt/optimizer.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "attn_opt/internal/emit.h"
#include "attn_opt/internal/opset_raise.h"
#include "attn_opt/internal/verifier.h"
#include "src/emit/read_sizes.h"
#include "src/graph/provenance.h"
#include "src/optimizer/effect.h"
#include "src/optimizer/function_inlining.h"
#include "src/optimizer/imports.h"
#include "src/optimizer/kv_cache.h"
#include "src/optimizer/loadable_int8.h"
#include "src/optimizer/local_attention.h"
#include "src/optimizer/match_reads.h"
#include "src/optimizer/model_verification.h"
#include "src/optimizer/node_checks.h"
#include "src/optimizer/operator_counts.h"
#include "src/optimizer/output_shapes.h"
#include "src/optimizer/respelled_einsums.h"
#include "src/optimizer/rewriting.h"
#include "src/optimizer/site_graphs.h"
#include "src/optimizer/sites.h"
#include "src/report/names.h"
#include "src/rewrite/equal_nodes.h"
#include "src/rewrite/guarded_reads.h"
#include "src/rewrite/inlined_names.h"
#include "src/rewrite/spared_expands.h"
#include "src/verify/seconds.h"

namespace attn_opt {
namespace {

using Clock = std::chrono::steady_clock;

/// The model as patterns read it, and what verifies the sites that they describe by that.
struct Reading {
  Reading(ModelGraph& view, const TensorStore& tensors, Target target, const AcceptedAssumptions& accepted, bool assume)
      : facts(view, tensors, assume), context{view, facts, {}, rules_of(target), accepted} {}

  Facts facts;
  MatchContext context;
  std::optional<Verifier> verifier;
};

/// Sizes that SITE takes for equal; empty if it takes none.
std::string sizes_taken_for_equal(const MatchedSite& site) {
  for (const Precondition& condition : site.match.sdpa.preconditions)
    if (condition.id == kSizesEqual && !condition.proven) return condition.detail;
  return {};
}

/// What EMISSION stands for: ANCHOR, then the nodes that it leaves dead, from first to last.
std::vector<const Node*> replaced_by(const Emission& emission, const Node& anchor) {
  std::vector<const Node*> replaced = {&anchor};
  replaced.insert(replaced.end(), emission.removed.begin(), emission.removed.end());
  std::ranges::sort(replaced.begin() + 1, replaced.end(), {}, &Node::position);
  return replaced;
}

class Run {
 public:
  /// CALLS: that were inlined in MODEL; null if there are none.
  Run(Model& model, const OptimizeOptions& options, AcceptedAssumptions accepted, std::unique_ptr<ModelGraph> view,
      const InlinedCalls* calls)
      : model_(model),
        options_(options),
        accepted_(std::move(accepted)),
        view_(std::move(view)),
        calls_(calls),
        usual_(*view_, *model.tensors, options.emit.target, accepted_, true) {
    add_verifier(usual_);
    if (options_.draw) graphs_.emplace(*view_, *model_.tensors);
  }

  Expected<Report> run() {
    const auto start = Clock::now();
    report_.opset_before = report_.opset_after = opset_version(model_.proto);
    ATTN_OPT_TRY(const auto chosen, chosen_patterns(options_));
    tell("matching", 0, 1);
    sites_ = find_sites(usual_.context, chosen, report_, {options_.trace, graphs_ ? &*graphs_ : nullptr});
    if (!accepted_.accepts(kSizesEqual)) describe_for_all_sizes();
    std::optional<RaisePlan> plan;
    report_.changed = fuse_sites(plan);
    merge_lines(sites_, report_);
    if (report_.changed) {
      declare_output_shapes(*view_, usual_.facts);
      if (plan) plan->apply(*view_);
      view_->compact();
    }
    report_.opset_after = opset_version(model_.proto);
    report_.seconds_match = seconds_since(start) - report_.seconds_verify;
    return std::move(report_);
  }

 private:
  void add_verifier(Reading& reading) {
    if (options_.verify == VerifyMode::kOff) return;
    VerifyOptions verification = options_.verification;
    verification.accepted = accepted_;
    verification.calls = calls_;
    verification.share_verdicts = options_.verify != VerifyMode::kAllSites;
    reading.verifier.emplace(reading.context, *model_.tensors, verification);
  }

  /// Sites that hang on sizes which may not be taken for equal are described anew by what holds in every run, where that will
  /// do.
  void describe_for_all_sizes() {
    for (MatchedSite& site : sites_.matched) describe_for_all_sizes(site);
  }

  /// False if that will not do, or SITE does not hang on such sizes.
  bool describe_for_all_sizes(MatchedSite& site) {
    std::string equal_sizes = sizes_taken_for_equal(site);
    if (equal_sizes.empty()) return false;
    if (!for_all_sizes_) {
      for_all_sizes_ = std::make_unique<Reading>(*view_, *model_.tensors, options_.emit.target, accepted_, false);
      add_verifier(*for_all_sizes_);
    }
    Node& anchor = *site.match.anchor;
    auto match = match_part(*site.pattern, anchor, site.part, for_all_sizes_->context);
    if (!match) return false;
    site.match = *std::move(match);
    site.equal_sizes = std::move(equal_sizes);
    enter_match(site.match, report_.sites[site.report]);
    return true;
  }

  Reading& reading_of(const MatchedSite& site) { return site.equal_sizes.empty() ? usual_ : *for_all_sizes_; }

  void tell(std::string_view step, size_t done, size_t all) const {
    if (options_.progress) options_.progress(step, static_cast<double>(done) / static_cast<double>(all));
  }

  /// False: none was fused. PLAN, if operators are to be raised, is how those around the sites are.
  bool fuse_sites(std::optional<RaisePlan>& plan) {
    std::vector<MatchedSite>& matched = sites_.matched;
    if (matched.empty()) return false;
    if (options_.emit.stage != Stage::kFunctions) {
      auto raise = plan_raise(*view_, usual_.facts, view_->edit_opset(), accepted_.accepts("rows-keep-a-key"));
      if (!raise) return refuse_all(raise.error());
      plan = *std::move(raise);
    }
    int committed = 0;
    for (size_t i = 0; i < matched.size() && committed != options_.stop_after; ++i) {
      committed += fuse(matched[i]);
      tell(options_.verify == VerifyMode::kOff ? "fusing" : "verifying", i + 1, matched.size());
    }
    for (const MatchedSite& site : matched) note_if_stopped(report_.sites[site.report]);
    return committed > 0;
  }

  /// Matches SITE again where an earlier one took away what it reads: a sum of scores that are an output of that one now, keys
  /// that are its present, or a product of weights of both.
  Matched<void> renew(MatchedSite& site) {
    const bool is_taken = site.match.insert_before->removed;
    if (!is_taken && !reads_what_is_gone(site.match)) return {};
    Node& anchor = *site.match.anchor;
    auto renewed = match_part(*site.pattern, anchor, site.part, reading_of(site).context);
    if (is_taken && (!renewed || renewed->insert_before->removed)) return missed(std::string(kNotAttention), &anchor, "");
    ATTN_OPT_MATCH(site.match, std::move(renewed));
    enter_match(site.match, report_.sites[site.report]);
    return {};
  }

  bool fuse(MatchedSite& site) {
    if (site.match.anchor->removed) return false;
    const SiteReport found = report_.sites[site.report];
    return fuse_as_described(site) || fuse_for_all_sizes(site, found);
  }

  /// SITE, of which FOUND was said when it was matched, was refused. If sizes were taken for equal, another description may
  /// hold: the one that is needed where they may not be.
  bool fuse_for_all_sizes(MatchedSite& site, const SiteReport& found) {
    SiteReport& line = report_.sites[site.report];
    const bool may_hold = line.verification || line.miss_id.starts_with("emit.");
    if (!may_hold || !site.equal_sizes.empty()) return false;
    const MatchedSite usual = site;
    SiteReport refused = std::exchange(line, found);
    if (describe_for_all_sizes(site) && fuse_as_described(site)) return true;
    line = std::move(refused);
    site = usual;
    return false;
  }

  bool fuse_as_described(MatchedSite& site) {
    SiteReport& line = report_.sites[site.report];
    if (options_.leave.contains(line.name))
      return refuse(line, {"site.invalid", site.match.anchor,
                           "with it the model is not valid any more; please report this model", line.peeled});
    if (auto renewed = renew(site); !renewed) return refuse(line, renewed.error());
    Reading& reading = reading_of(site);
    EmitOptions writing = options_.emit;
    writing.accepted = accepted_;
    auto emission = guarded(*site.match.anchor, [&] { return emit_attention(site.match, reading.context, shared_, writing); });
    if (!emission) {
      const Miss& miss = emission.error();
      return refuse(line, site.equal_sizes.empty() ? miss : needs_equal_sizes(site, line, miss.id + ", " + miss.found));
    }
    // What else reads the probabilities would have the model's nodes stay, beside those for sizes that are never met.
    const bool stays = std::ranges::find(emission->removed, site.match.anchor) == emission->removed.end();
    if (stays && !site.equal_sizes.empty() && accepted_.accepts(kSizesEqual)) return false;
    line.form = emission->form;
    line.past = emission->has_past;
    line.is_causal = emission->is_causal;
    line.mask_reading = emission->mask_reading;
    line.scale = emission->scale;
    line.preconditions = emission->preconditions;
    draw(*emission, site.match, line);
    set_heads(site.match.sdpa, emission->kv_group, line);
    if (site.match.is_target_form && !site.match.breaks_target && emission->writes("Attention") &&
        emission->kv_group <= site.match.kv_group && emission->has_past == site.match.has_past)
      return refuse(line, {"site.nothing-gained", site.match.anchor, "the node would be written as it is", line.peeled});
    for (const Precondition& precondition : line.preconditions)
      if (!accepted_.accepts(precondition))
        return refuse(line, {"strict.assumed", site.match.anchor, precondition.id + ": " + precondition.detail, line.peeled});
    if (options_.verify != VerifyMode::kOff && !verified(*emission, site, line)) {
      if (site.equal_sizes.empty()) return false;
      const std::string reason = line.verification ? line.verification->reason : "";
      line.verification.reset();
      return refuse(line, needs_equal_sizes(site, line, reason));
    }
    line.effect = effect_of(*emission, site.match.sdpa, reading.facts);
    const std::vector<Node*> read_for_sizes = nodes_read_for_sizes(*emission);
    const std::vector<Value*> at_hand = read_for_sizes.empty() ? std::vector<Value*>() : values_at_hand(*emission);
    carry_metadata(replaced_by(*emission, *site.match.anchor), emission->edit.nodes());
    for (const Edit::Takeover& takeover : emission->edit.takeovers())
      reading.facts.take_over(*takeover.existing, *takeover.made);
    emission->edit.commit(shared_);
    usual_.context.no_blocks.clear();
    if (for_all_sizes_) for_all_sizes_->context.no_blocks.clear();
    say_sizes(read_for_sizes, at_hand, reading.context, shared_);
    if (options_.on_commit) options_.on_commit(*view_, line.name);
    line.outcome = SiteReport::Outcome::kFused;
    return true;
  }

  /// What is in the way of SITE, which WITHOUT equal sizes cannot be written.
  static Miss needs_equal_sizes(const MatchedSite& site, const SiteReport& line, const std::string& without) {
    return {"strict.assumed", site.match.anchor,
            std::string(kSizesEqual) + ": " + site.equal_sizes + "; for all sizes: " + without, line.peeled};
  }

  void draw(const Emission& emission, const Match& match, SiteReport& line) {
    if (!graphs_) return;
    line.before = graphs_->before(emission, match.sdpa);
    line.after = graphs_->after(emission, match.sdpa);
  }

  bool verified(const Emission& emission, const MatchedSite& site, SiteReport& line) {
    const auto verification = guarded(*site.match.anchor, [&] {
      return Matched<Verification>(reading_of(site).verifier->verify(emission, site.match.sdpa));
    });
    if (!verification) return refuse(line, verification.error());
    line.verification = *verification;
    std::ranges::copy(verification->found, std::back_inserter(line.preconditions));
    report_.seconds_verify += line.verification->seconds;
    const Verdict verdict = line.verification->verdict;
    if (verdict == Verdict::kUnverified && !(options_.allow_unverified && !options_.strict && !options_.exact))
      return refuse(line, {std::string(miss_id_of(verdict)), site.match.anchor, line.verification->reason, line.peeled});
    if (verdict == Verdict::kFailed) line.outcome = SiteReport::Outcome::kRefused;
    return verdict != Verdict::kFailed;
  }

  bool refuse(SiteReport& line, const Miss& miss) {
    if (graphs_ && !line.before && miss.node) line.before = graphs_->around(*miss.node, miss.node);
    enter_miss(miss, SiteReport::Outcome::kRefused, line);
    return false;
  }

  bool refuse_all(const Miss& miss) {
    for (const MatchedSite& site : sites_.matched) refuse(report_.sites[site.report], miss);
    report_.not_raised.push_back((miss.node ? "'" + miss.node->label() + "' (" + miss.node->op() + "): " : "") + miss.found);
    return false;
  }

  /// A matched site that --stop-after never got to.
  static void note_if_stopped(SiteReport& line) {
    if (line.outcome != SiteReport::Outcome::kMissed) return;
    enter_miss({"site.stopped", nullptr, "--stop-after was reached", {}}, SiteReport::Outcome::kRefused, line);
  }

  static void set_heads(const Sdpa& sdpa, int64_t kv_group, SiteReport& line) {
    if (!sdpa.query_heads.is_constant()) return;
    line.q_heads = sdpa.query_heads.value();
    line.kv_heads = line.q_heads / std::max<int64_t>(kv_group, 1);
  }

  Model& model_;
  const OptimizeOptions& options_;
  AcceptedAssumptions accepted_;
  std::unique_ptr<ModelGraph> view_;
  const InlinedCalls* calls_;
  Reading usual_;
  std::unique_ptr<Reading> for_all_sizes_;  ///< made when it is wanted
  FoundSites sites_;
  SharedNodes shared_;
  std::optional<SiteGraphs> graphs_;  ///< none: nothing is drawn
  Report report_;
};

/// Fuses the attention of MODEL.
Expected<Report> fuse_attention(Model& model, const OptimizeOptions& options, AcceptedAssumptions accepted,
                                Workings* workings) {
  const bool is_for_nodes = options.emit.stage == Stage::kAttention;
  const RespelledEinsums respelled(model.proto);
  ATTN_OPT_TRY(auto inlining,
               is_for_nodes ? inline_attention_functions(model, options) : inline_local_attention(model, options));
  ATTN_OPT_TRY(auto view, ModelGraph::create(model.proto));
  ATTN_OPT_CHECK(check_nodes(*view));
  view->remove_dead();  // a dead reader would have the scores of its site written beside the node
  InlinedCalls* calls = inlining ? &inlining->calls : nullptr;
  Redirections redirections;
  spare_expands(*view, *model.tensors, calls, redirections);
  merge_equal_nodes(*view, *model.tensors, calls, redirections);
  if (!calls) read_guarded(*view, *model.tensors, redirections);
  view->set_edit_opset(options.opset);
  const auto run = std::make_shared<Run>(model, options, std::move(accepted), std::move(view), calls);
  if (workings) *workings = run;
  ATTN_OPT_TRY(Report report, run->run());
  if (!report.changed) redirections.restore();
  if (!report.changed && inlining) undo(*inlining, model);
  respelled.restore(model.proto);
  return report;
}

/// Rewrites what is of higher priority than attention, fuses that, and rewrites the rest.
Expected<Report> rewrite_and_fuse(Model& model, const OptimizeOptions& options, AcceptedAssumptions accepted,
                                  Workings* workings) {
  ATTN_OPT_TRY(std::vector<ChosenRewrite> first, chosen_rewrites(options));
  if (first.empty()) return fuse_attention(model, options, std::move(accepted), workings);
  const auto behind = std::ranges::find_if(first, [](const ChosenRewrite& one) { return one.priority <= kAttentionPriority; });
  const std::vector<ChosenRewrite> last(behind, first.end());
  first.erase(behind, first.end());
  OptimizeOptions within = options;
  Report rewritten;
  const int opset_before = opset_version(model.proto);
  ATTN_OPT_CHECK(rewrite_model(model, first, options, within.stop_after, rewritten));
  ATTN_OPT_TRY(Report report, fuse_attention(model, within, std::move(accepted), workings));
  if (within.stop_after > 0) within.stop_after -= report.fused();
  ATTN_OPT_CHECK(rewrite_model(model, last, options, within.stop_after, rewritten));
  merge(std::move(rewritten), report);
  report.opset_before = opset_before;
  report.opset_after = opset_version(model.proto);
  return report;
}

/// Rewrites MODEL and makes its caches static where OPTIONS ask for that; what cannot be is written as without.
Expected<Report> fuse_for_caches(Model& model, const onnx::ModelProto& original, const OptimizeOptions& options,
                                 Workings* workings) {
  ATTN_OPT_TRY(const AcceptedAssumptions accepted, accepted_by(options));
  if (!options.kv_cache.is_static) return rewrite_and_fuse(model, options, accepted, workings);
  OptimizeOptions with_heads = options;
  with_heads.emit.past_is_4d = true;
  ATTN_OPT_TRY(Report report, rewrite_and_fuse(model, with_heads, accepted, nullptr));
  ATTN_OPT_CHECK(make_caches_static(model, original, options, report));
  if (report.kv_cache->outcome == PlaceReport::Outcome::kFused) return report;
  model.proto = original;
  ATTN_OPT_TRY(Report growing, rewrite_and_fuse(model, options, accepted, workings));
  growing.kv_cache = std::move(report.kv_cache);
  return growing;
}

}  // namespace

Expected<Report> optimize(Model& model, const OptimizeOptions& options, Workings* workings) {
  ATTN_OPT_CHECK(check_opset(options));
  ATTN_OPT_CHECK(check_kv_cache(options));
  const OperatorCounts before = count_operators(model.proto);
  const int64_t weight_bytes = weight_bytes_of(model.proto);
  const bool is_run = options.verify == VerifyMode::kModel || options.kv_cache.is_static;
  const onnx::ModelProto original = is_run ? model.proto : onnx::ModelProto();
  const bool dequantizes = before.contains("DequantizeLinear");
  const std::set<std::string> kept = dequantizes ? reads_behind_int8(model.proto) : std::set<std::string>();
  ATTN_OPT_TRY(Report report, fuse_for_caches(model, original, options, workings));
  if (dequantizes && report.changed && !rules_of(options.emit.target).takes_moved_int8) {
    ATTN_OPT_CHECK(keep_int8_loadable(model, kept));
  }
  const OperatorCounts after = report.changed ? count_operators(model.proto) : before;
  if (report.changed) update_imports(before, after, model.proto);
  if (report.changed) rename_inlined_values(model.proto);
  enter_counts(before, after, report);
  enter_attention_nodes(before, report);
  report.weight_bytes = weight_bytes;
  const bool is_called_otherwise = report.kv_cache && report.kv_cache->outcome == PlaceReport::Outcome::kFused;
  if (options.verify == VerifyMode::kModel && report.changed && !is_called_otherwise) {
    ATTN_OPT_TRY(report.model_verification,
                 verify_model(original, model.proto, *model.tensors, options.trial, assumes_rows_keep_a_key(report)));
  }
  return report;
}

}  // namespace attn_opt
