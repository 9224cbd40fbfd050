#include "attn_opt/internal/verifier.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "src/exec/layout/random_numbers.h"
#include "src/verify/canonical_text.h"
#include "src/verify/score_sizes.h"
#include "src/verify/seconds.h"
#include "src/verify/shrinking.h"
#include "src/verify/site_run.h"
#include "src/verify/solved_sizes.h"
#include "src/verify/twin_inputs.h"

namespace attn_opt {

/// The executors of a site for all sizes: those that constants get other numbers for have their own.
class SiteRunners {
 public:
  SiteRunners(const CutSite& site, const SiteModels& models, const TensorStore& tensors, const RunLimits& limits)
      : site_(site), models_(models), tensors_(tensors), limits_(limits) {}

  /// The failure if it cannot be made.
  tl::expected<const SiteRunner*, SiteRunner::Failure> runner_for(const SizeAssignment& sizes) {
    if (!sizes.renumbers()) return made(plain_, models_);
    renumbered_.reset();
    renumbered_models_ = models_;
    for (auto* model : {&renumbered_models_.before, &renumbered_models_.after, &renumbered_models_.after_exact})
      renumber_constants(sizes, *model);
    return made(renumbered_, renumbered_models_);
  }

 private:
  tl::expected<const SiteRunner*, SiteRunner::Failure> made(std::optional<SiteRunner>& runner, const SiteModels& models) const {
    if (!runner) {
      auto created = SiteRunner::create(site_, models, tensors_, limits_);
      if (!created) return tl::unexpected<SiteRunner::Failure>(std::move(created.error()));
      runner = *std::move(created);
    }
    return &*runner;
  }

  const CutSite& site_;
  const SiteModels& models_;
  const TensorStore& tensors_;
  RunLimits limits_;
  SiteModels renumbered_models_;
  std::optional<SiteRunner> plain_, renumbered_;
};

namespace {

using Clock = std::chrono::steady_clock;

/// Sizes under which a site must have run where some are free, and draws for those beyond the first.
constexpr int kWantedAssignments = 2;
constexpr std::array kBriefKinds = {DrawKind::kMixed, DrawKind::kEmptyRow, DrawKind::kRandom};

std::string on_draw(DrawKind kind, const SizeAssignment& sizes) {
  return " (draw '" + std::string(name_of(kind)) + "', sizes " + sizes.str() + ")";
}

/// An edit that cannot run where the model can is wrong; one that takes too much, or an operator that we
/// lack, is not.
bool is_wrong(const SiteRunner::Failure& failure) { return failure.is_after && failure.error.code == ErrorCode::kInvalidInput; }

std::string does_not_run(const SiteRunner::Failure& failure) {
  return "what is written does not run: " + failure.error.message();
}

/// What APART, sizes that break an assumption, or may be other than they mostly are, show of a site: why what is written is
/// wrong, empty if nothing does. Sizes with which the model itself does not run, and rows that one side makes no number, show
/// nothing; nor does another shape where sizes are assumed to be equal.
std::string fault_beyond_assumptions(const CutSite& site, const Sdpa& sdpa, SiteRunners& runners, const Assumed& assumed,
                                     const std::vector<SizeAssignment>& apart, bool is_for_all, uint64_t seed,
                                     size_t memory_limit) {
  for (const auto& sizes : apart) {
    const auto runner = runners.runner_for(sizes);
    auto feeds = draw_inputs({site, sdpa, sizes, DrawKind::kRandom, seed, memory_limit});
    if (!runner || !feeds) continue;
    const auto result = (*runner)->run(*feeds, sdpa, sizes, assumed);
    if (!result && is_wrong(result.error())) return does_not_run(result.error()) + on_draw(DrawKind::kRandom, sizes);
    // An Einsum takes one key for all values, or the reverse, and adds up what no attention does: that is assumed away.
    const auto keys = sizes.of(rows_of(sdpa.k)), values = sizes.of(rows_of(sdpa.v));
    if (!result || (!is_for_all && keys && values && *keys != *values)) continue;
    for (const Judgement* judgement : {&result->algebra, &result->in_type})
      if (!judgement->failure.empty() && (std::isfinite(judgement->difference) || (is_for_all && judgement->is_unlike)))
        return judgement->failure + on_draw(DrawKind::kRandom, sizes);
  }
  return {};
}

/// True if an operator of attention that is there already refuses SIZES, though the body that ONNX gives it may run: a mask
/// broadcasts to the scores, and they do not to it.
bool are_refused(const SizeAssignment& sizes, const Sdpa& sdpa) {
  return std::ranges::any_of(sdpa.legal_sizes, [&](const std::pair<Dim, Dim>& pair) {
    const auto own = sizes.of(pair.first), whole = sizes.of(pair.second);
    return own && whole && *own != 1 && *whole == 1;
  });
}

/// Sizes apart from the first of ASSIGNMENTS; where nothing may be assumed of sizes, from all, since a model whose sizes must
/// be equal does not run with the first.
std::vector<SizeAssignment> apart_from(const std::vector<SizeAssignment>& assignments, const CutSite& site, const Sdpa& sdpa,
                                       SizeEquations& equations) {
  std::vector<SizeAssignment> apart;
  const size_t count = equations.facts().may_assume() ? 1 : assignments.size();
  for (size_t i = 0; i < count; ++i)
    for (SizeAssignment& other : sizes_apart(site, equations, assignments[i]))
      if (!are_refused(other, sdpa)) apart.push_back(std::move(other));
  return apart;
}

/// Draws and runs a site until it fails or enough is shown.
class SiteCheck {
 public:
  SiteCheck(const CutSite& site, const Sdpa& sdpa, SiteRunners& runners, const Assumed& assumed, size_t memory_limit)
      : site_(site), sdpa_(sdpa), runners_(runners), assumed_(assumed), memory_limit_(memory_limit) {}

  Verification check(const std::vector<SizeAssignment>& assignments, uint64_t seed) {
    int ran = 0;
    for (const auto& sizes : assignments) {
      if (sizes.is_fallback() && ran >= kWantedAssignments) break;
      const auto runner = runners_.runner_for(sizes);
      // What more sizes would take is no reason to doubt those that were run.
      const auto stopped = [&] {
        return result_.verdict == Verdict::kUnverified && sizes.is_fallback() && ran > 0 ? verified() : std::move(result_);
      };
      if (!runner) {
        if (not_run(runner.error(), sizes) == Step::kStop) return stopped();
        continue;
      }
      runner_ = *runner;
      for (const DrawKind kind : kinds(ran == 0, sizes)) {
        const Step step = run({site_, sdpa_, sizes, kind, seed + static_cast<uint64_t>(result_.draws), memory_limit_});
        if (step == Step::kStop) return stopped();
        if (step == Step::kNextSizes) break;
        ran += kind == kinds(ran == 0, sizes).front();
      }
    }
    if (assignments.empty()) result_.reason = "no small sizes leave the site queries, keys and a batch";
    return ran > 0 ? verified() : std::move(result_);
  }

 private:
  enum class Step { kGoOn, kNextSizes, kStop };

  /// Everything agreed that was run.
  Verification verified() {
    result_.verdict = Verdict::kVerified;
    result_.reason.clear();
    if (!result_.explained_by.empty() && !has_equal_rows_)
      failed("nothing was compared: in every row " + result_.explained_by.front() + " does not hold, which is assumed");
    return std::move(result_);
  }

  /// All of which are drawn for the FIRST sizes, unless these make so many scores that a draw takes part of a second.
  std::vector<DrawKind> kinds(bool first, const SizeAssignment& sizes) const {
    std::vector<DrawKind> all = draw_kinds(site_, sdpa_);
    if (first && number_of_scores(sdpa_, sizes) <= kMaxScoresOfOwnNumbers) return all;
    std::erase_if(all, [](DrawKind kind) { return std::ranges::find(kBriefKinds, kind) == kBriefKinds.end(); });
    return all;
  }

  Step run(const DrawRequest& request) {
    auto feeds = draw_inputs(request);
    if (!feeds) return not_run(feeds.error());
    const auto result = runner_->run(*feeds, sdpa_, request.sizes, assumed_);
    if (!result) return not_run(result.error(), request.sizes, on_draw(request.kind, request.sizes));
    ++result_.draws;
    result_.algebra_difference = std::max(result_.algebra_difference, result->algebra.difference);
    result_.type_difference_ulp = std::max(result_.type_difference_ulp, result->in_type.difference);
    for (const auto* judgement : {&result->algebra, &result->in_type}) {
      if (!judgement->failure.empty()) {
        result_.is_of_zero_row = judgement->is_of_zero_row;
        return failed(judgement->failure + on_draw(request.kind, request.sizes));
      }
      for (const auto& id : judgement->explained_by) explain(id);
      has_equal_rows_ = has_equal_rows_ || judgement->has_equal_rows;
    }
    return Step::kGoOn;
  }

  Step failed(std::string reason) {
    result_.verdict = Verdict::kFailed;
    result_.reason = std::move(reason);
    return Step::kStop;
  }

  /// Numbers that are not the model's own may fit nothing: that says nothing of what is written.
  Step not_run(const SiteRunner::Failure& failure, const SizeAssignment& sizes, const std::string& when = {}) {
    if (is_wrong(failure) && !sizes.renumbers()) return failed(does_not_run(failure) + when);
    return not_run(failure.error);
  }

  /// The first reason is kept. A limit holds for the whole site.
  Step not_run(const Error& error) {
    if (result_.reason.empty() || error.code == ErrorCode::kLimit) result_.reason = error.message();
    return error.code == ErrorCode::kLimit || error.code == ErrorCode::kUnsupported ? Step::kStop : Step::kNextSizes;
  }

  void explain(const std::string& id) {
    auto& ids = result_.explained_by;
    if (std::ranges::find(ids, id) == ids.end()) ids.push_back(id);
  }

  const CutSite& site_;
  const Sdpa& sdpa_;
  SiteRunners& runners_;
  const SiteRunner* runner_ = nullptr;
  const Assumed& assumed_;
  size_t memory_limit_;
  bool has_equal_rows_ = false;
  Verification result_;
};

Verification without_draws(Verdict verdict, std::string reason) {
  Verification result;
  result.verdict = verdict;
  result.reason = std::move(reason);
  return result;
}

/// What RESULT needs that EMISSION does not list, as no reading of the model tells it: that NaN may become a number where the
/// model's type overflows between the scores and the result.
std::optional<Precondition> unlisted_overflow(const Emission& emission, const Verification& result) {
  constexpr std::string_view kId = "scores-finite";
  const auto is_listed = [&](const Precondition& condition) { return condition.id == kId && !condition.proven; };
  if (std::ranges::find(result.explained_by, kId) == result.explained_by.end()) return std::nullopt;
  if (std::ranges::any_of(emission.preconditions, is_listed)) return std::nullopt;
  return Precondition{std::string(kId), false, "where a number on the way overflows its type, NaN becomes the exact result",
                      true};
}

Verification unverified(const Error& error) { return without_draws(Verdict::kUnverified, error.message()); }

}  // namespace

struct Verifier::Impl {
  Impl(MatchContext given, const TensorStore& store, const VerifyOptions& chosen)
      : context(given), tensors(store), options(chosen), functions(given.view), read(chosen.calls), equations(given.facts) {}

  Verification verify(const Emission& emission, const Sdpa& sdpa) {
    Verification result = verify_cut(emission, sdpa, false);
    // A guard that reads a mask above the cut is given other rows than the mask: it may make 0 of some that are whole there.
    if (!sdpa.guarded || sdpa.hides_nan || !result.is_of_zero_row) return result;
    Verification as_computed = verify_cut(emission, sdpa, true);
    return as_computed.verdict == Verdict::kVerified ? as_computed : result;
  }

  Verification verify_cut(const Emission& emission, const Sdpa& sdpa, bool computes_masks) {
    auto site = cut_site(emission, sdpa, {context.facts, tensors, read, computes_masks});
    if (!site && site.error().code == ErrorCode::kInvalidInput) return without_draws(Verdict::kFailed, site.error().message());
    if (!site) return unverified(site.error());
    if (const std::string fault = read.wiring_fault(site->before.nodes); !fault.empty())
      return without_draws(Verdict::kFailed, fault);
    note_twins(*site, sdpa, context.facts);
    for (const auto& [one, other] : sdpa.legal_sizes) equations.add(one, other);
    // What this site takes or needs for equal is no fact for others.
    std::vector<std::pair<Dim, Dim>> equal = required_sizes(*site, context.facts);
    equal.insert(equal.begin(), emission.equal_sizes.begin(), emission.equal_sizes.end());
    std::optional<SizeEquations> own;
    if (!equal.empty()) own = equations;
    for (const auto& [one, other] : equal) own->add(one, other);
    SizeEquations& chosen = own ? *own : equations;
    const auto assignments = size_assignments(*site, sdpa, chosen);
    const std::string text = canonical_text({*site, emission, sdpa, assignments, read});
    if (auto known = verdicts.find(text); options.share_verdicts && known != verdicts.end()) {
      Verification shared = known->second;
      shared.shared = true;
      shared.seconds = 0;
      return shared;
    }
    Verification result = run(*site, emission, sdpa, chosen, assignments, hash_bytes(text));
    // What the model cannot run with sizes that were taken for equal may differ where it does run.
    if (own && result.verdict == Verdict::kUnverified && result.draws == 0)
      result = run(*site, emission, sdpa, equations, size_assignments(*site, sdpa, equations), hash_bytes(text));
    if (options.share_verdicts) verdicts.emplace(text, result);
    return result;
  }

  Verification run(const CutSite& site, const Emission& emission, const Sdpa& sdpa, SizeEquations& chosen,
                   const std::vector<SizeAssignment>& assignments, uint64_t seed) {
    const auto start = Clock::now();
    const SiteModels models = write_site(site, emission, functions, read);
    SiteRunners runners(site, models, tensors, {options.memory_limit, thread_cpu_time() + options.time_limit});
    const Assumed assumed(emission.preconditions);
    const auto check = [&](bool renumbered) {
      std::vector<SizeAssignment> of_kind = assignments;
      std::erase_if(of_kind, [renumbered](const SizeAssignment& sizes) { return sizes.renumbers() != renumbered; });
      return SiteCheck(site, sdpa, runners, assumed, options.memory_limit).check(of_kind, seed);
    };
    // Numbers that are not the model's own may fit a site so badly that its sides differ: its own decide, where they can be
    // run.
    Verification result = check(true);
    if (result.verdict != Verdict::kVerified) {
      Verification own = check(false);
      if (own.verdict != Verdict::kUnverified || result.verdict != Verdict::kFailed) result = std::move(own);
    }
    if (result.verdict == Verdict::kVerified) {
      result.reason = fault_beyond_assumptions(site, sdpa, runners, assumed, apart_from(assignments, site, sdpa, chosen),
                                               !context.facts.may_assume(), seed, options.memory_limit);
      if (!result.reason.empty()) result.verdict = Verdict::kFailed;
    }
    if (auto needed = unlisted_overflow(emission, result)) result.found.push_back(*std::move(needed));
    const auto refused =
        std::ranges::find_if(result.explained_by, [&](const std::string& id) { return !may_explain(id, emission, result); });
    if (result.verdict == Verdict::kVerified && refused != result.explained_by.end()) {
      result.verdict = Verdict::kFailed;
      result.reason = "differs where " + *refused + " does not hold, which is assumed";
    }
    result.seconds = seconds_since(start);
    return result;
  }

  /// True if every precondition ID that EMISSION lists, or that RESULT found, may be assumed.
  bool may_explain(const std::string& id, const Emission& emission, const Verification& result) const {
    const auto is_accepted = [&](const Precondition& condition) {
      return condition.id != id || options.accepted.accepts(condition);
    };
    return std::ranges::all_of(emission.preconditions, is_accepted) && std::ranges::all_of(result.found, is_accepted);
  }

  MatchContext context;
  const TensorStore& tensors;
  VerifyOptions options;
  LocalFunctionGraphs functions;
  ReadNodes read;
  SizeEquations equations;
  std::unordered_map<std::string, Verification> verdicts;
};

Verifier::Verifier(const MatchContext& context, const TensorStore& tensors, const VerifyOptions& options)
    : impl_(std::make_unique<Impl>(context, tensors, options)) {}
Verifier::~Verifier() = default;

Verification Verifier::verify(const Emission& emission, const Sdpa& sdpa) { return impl_->verify(emission, sdpa); }

Verification Verifier::verify(const Emission& emission) { return impl_->verify(emission, Sdpa()); }

}  // namespace attn_opt
