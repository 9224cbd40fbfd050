#include "src/cli/cases/case_reduction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/cli/cases/case_shrinking.h"
#include "src/io/check/full_check.h"
#include "src/io/text_format.h"
#include "src/report/findings.h"
#include "src/report/names.h"

namespace attn_opt {
namespace {

using Outcome = SiteReport::Outcome;

bool near(double one, double other) { return std::abs(one - other) <= 1e-6 * std::max(1.0, std::abs(one)); }

bool has_failed(const PlaceReport& site) { return site.verification && site.verification->verdict == Verdict::kFailed; }

bool has_same_form(const SiteReport& one, const SiteReport& other) {
  return one.peeled == other.peeled && one.form == other.form && one.kv_heads == other.kv_heads && one.past == other.past &&
         one.is_causal == other.is_causal && near(one.scale, other.scale) && near(one.softcap, other.softcap);
}

/// Did ONE end as OTHER: with the same miss, or written with the same verdict?
bool has_same_end(const PlaceReport& one, const PlaceReport& other) {
  if (one.outcome != other.outcome || one.pattern != other.pattern || one.miss_id != other.miss_id) return false;
  if (one.outcome != Outcome::kFused) return has_failed(one) == has_failed(other);
  return !one.verification || (other.verification && one.verification->verdict == other.verification->verdict);
}

/// True if a case for ONE is a case for OTHER.
bool shows_the_same(const SiteReport& one, const SiteReport& other) {
  if (!has_same_end(one, other)) return false;
  return one.outcome != Outcome::kFused || has_same_form(one, other);
}

bool shows_the_same(const RewriteReport& one, const RewriteReport& other) {
  return has_same_end(one, other) && (one.outcome != Outcome::kFused || one.operators == other.operators);
}

bool is_valid(const onnx::ModelProto& proto) { return full_check(proto).empty(); }

/// What optimising PROTO says, if it can be optimised and gives a model that is valid: of sizes that nothing infers, those of
/// an operator of com.microsoft, it may not be.
std::optional<Report> report_of(const onnx::ModelProto& proto, const OptimizeOptions& options) {
  Model model{proto, "-", {&inline_tensors(), [](const TensorStore*) {}}};
  auto report = optimize(model, options);
  if (!report || (report->changed && !is_valid(model.proto))) return std::nullopt;
  return *std::move(report);
}

const std::vector<SiteReport>& lines_beside(const SiteReport&, const Report& report) { return report.sites; }
const std::vector<RewriteReport>& lines_beside(const RewriteReport&, const Report& report) { return report.rewrites; }

/// The line of REPORT that shows what SITE shows; null if there is none.
template <class Site>
const Site* line_like(const Site& site, const std::optional<Report>& report) {
  if (!report) return nullptr;
  const auto& lines = lines_beside(site, *report);
  const auto found = std::ranges::find_if(lines, [&](const Site& line) { return shows_the_same(site, line); });
  return found == lines.end() ? nullptr : &*found;
}

std::string counts_in(const Report& report) {
  std::string text = fmt::format("fused={} refused={} missed={}", report.fused(), report.refused(), report.missed());
  return report.rewrites.empty() ? text : text + fmt::format(" rewritten={}", report.rewritten());
}

/// The miss, and the verdict if SITE is all that REPORT has.
std::string end_in(const Report& report, const PlaceReport& site) {
  std::string text = site.miss_id.empty() ? "" : " miss=" + site.miss_id;
  const bool is_alone = report.sites.size() + report.rewrites.size() == 1;
  if (is_alone && site.outcome != Outcome::kMissed && site.verification)
    text += " verdict=" + std::string(name_of(site.verification->verdict));
  return text;
}

std::string expectation(const RewriteReport& site, const Report& report) { return counts_in(report) + end_in(report, site); }

std::string expectation(const SiteReport& site, const Report& report) {
  std::string text = counts_in(report) + end_in(report, site);
  if (report.sites.size() != 1) return text;
  if (site.outcome != Outcome::kFused) return text;
  text += fmt::format(" form={} past={} scale={}", site.form, site.past ? "yes" : "no", site.scale);
  if (site.kv_heads > 0) text += fmt::format(" kv_heads={}", site.kv_heads);
  if (site.softcap > 0) text += fmt::format(" softcap={}", site.softcap);
  for (const Precondition& condition : site.preconditions)
    text += " precondition=" + condition.id + ":" + std::string(state_of(condition));
  return text;
}

/// The first cut that shows what SITE shows: the nearer nodes, then ever more of them, then with their weights.
Expected<CaseModel> first_cut(CaseCutter& cutter, const PlaceReport& site, const CaseBudget& budget, const CaseTest& holds) {
  constexpr CutLimits kLimits[] = {{60, 64}, {400, 64}, {400, 1 << 16}, {5000, 1 << 16}};
  for (CutLimits limits : kLimits) {
    limits.bytes = budget.bytes;
    ATTN_OPT_TRY(CaseModel model, cutter.cut(site, limits));
    drop_unneeded(*model.proto.mutable_graph());
    if (holds(model.proto)) return model;
    if (holds.is_over())
      return fail(ErrorCode::kLimit, site.name,
                  fmt::format("no part of the model that shows the same was found in {} s", budget.seconds),
                  "give more with --case-seconds");
  }
  return fail(ErrorCode::kUnsupported, site.name, "no part of the model around it shows the same",
              "the miss depends on nodes far from it, or on bodies of control flow");
}

CaseTest::Clock::time_point deadline_of(const CaseBudget& budget) {
  if (budget.seconds <= 0) return CaseTest::Clock::time_point::max();
  return CaseTest::Clock::now() +
         std::chrono::duration_cast<CaseTest::Clock::duration>(std::chrono::duration<double>(budget.seconds));
}

/// The smallest model found that shows what SITE shows, VERIFYING each as OPTIONS say or none.
template <class Site>
Expected<onnx::ModelProto> reduced_model(CaseCutter& cutter, const Site& site, const OptimizeOptions& options, bool verifying,
                                         const CaseBudget& budget) {
  OptimizeOptions trial = options;
  trial.verification.memory_limit = std::min(trial.verification.memory_limit, budget.bytes);
  Site wanted = site;
  if (!verifying) {
    trial.verify = VerifyMode::kOff;
    wanted.verification.reset();
  }
  const auto shows_it = [&](const onnx::ModelProto& proto) {
    return line_like(wanted, report_of(proto, trial)) && is_valid(proto);
  };
  const CaseTest holds(shows_it, deadline_of(budget));
  ATTN_OPT_TRY(CaseModel model, first_cut(cutter, site, budget, holds));
  shrink(model, holds, site.outcome == Outcome::kFused ? Integers::kStay : Integers::kMayBeInputs);
  rename_all(model.proto);
  return std::move(model.proto);
}

/// PATH, which is relative to the working directory, as it is called in FOLDER.
std::string path_from(const std::filesystem::path& folder, const std::string& path) {
  std::error_code error;
  const auto whole = std::filesystem::absolute(path, error), base = std::filesystem::absolute(folder, error);
  return error ? path : std::filesystem::proximate(whole, base, error).generic_string();
}

/// Is SITE what it is by what verification found, or by its not running?
bool needs_verification(const PlaceReport& site) { return has_failed(site) || site.miss_id == kVerificationUnverified; }

template <class Site>
Expected<std::string> case_of(CaseCutter& cutter, const Site& site, OptimizeArguments arguments, const CasePlace& place,
                              const CaseBudget& budget) {
  ATTN_OPT_TRY(OptimizeOptions options, to_options(arguments));
  ATTN_OPT_TRY(const onnx::ModelProto small, reduced_model(cutter, site, options, needs_verification(site), budget));
  Site wanted = site;
  auto report = report_of(small, options);
  if (!line_like(wanted, report) && site.outcome == Outcome::kFused) {
    // Sizes that the whole model has, and its verification with them, may be told by nodes that are not needed for the match.
    arguments.verify = "off";
    options.verify = VerifyMode::kOff;
    wanted.verification.reset();
    report = report_of(small, options);
  }
  const Site* line = line_like(wanted, report);
  if (!line) return fail(ErrorCode::kUnsupported, site.name, "what is left of it depends on its names");
  ATTN_OPT_TRY(const std::string text, print_text(small, place.name));
  for (std::string& folder : arguments.patterns) folder = path_from(place.folder, folder);
  const std::string words = to_words(arguments);
  return "# CASE   " + place.name + "\n# SOURCE reduced from a model by attn-opt\n" +
         (words.empty() ? "" : "# RUN    " + words + "\n") + "# EXPECT " + expectation(*line, *report) + "\n" +
         (report->fused() + report->rewritten() > 0 ? "# VERIFY off\n" : "") + text;
}

}  // namespace

Expected<std::string> reduced_case(CaseCutter& cutter, const SiteReport& site, OptimizeArguments arguments,
                                   const CasePlace& place, const CaseBudget& budget) {
  return case_of(cutter, site, std::move(arguments), place, budget);
}

Expected<std::string> reduced_case(CaseCutter& cutter, const RewriteReport& site, OptimizeArguments arguments,
                                   const CasePlace& place, const CaseBudget& budget) {
  return case_of(cutter, site, std::move(arguments), place, budget);
}

}  // namespace attn_opt
