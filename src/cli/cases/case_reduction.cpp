#include "src/cli/cases/case_reduction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/cli/cases/case_shrinking.h"
#include "src/io/check/full_check.h"
#include "src/io/text_format.h"
#include "src/report/names.h"

namespace attn_opt {
namespace {

using Outcome = SiteReport::Outcome;

bool near(double one, double other) { return std::abs(one - other) <= 1e-6 * std::max(1.0, std::abs(one)); }

bool has_failed(const SiteReport& site) { return site.verification && site.verification->verdict == Verdict::kFailed; }

/// True if a case for ONE is a case for OTHER.
bool shows_the_same(const SiteReport& one, const SiteReport& other) {
  if (one.outcome != other.outcome || one.pattern != other.pattern || one.miss_id != other.miss_id) return false;
  if (one.outcome != Outcome::kFused) return has_failed(one) == has_failed(other);
  const bool same_verdict =
      !one.verification || (other.verification && one.verification->verdict == other.verification->verdict);
  return same_verdict && one.peeled == other.peeled && one.form == other.form && one.kv_heads == other.kv_heads &&
         one.past == other.past && one.is_causal == other.is_causal && near(one.scale, other.scale) &&
         near(one.softcap, other.softcap);
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

/// The line of REPORT that shows what SITE shows; null if there is none.
const SiteReport* line_like(const SiteReport& site, const std::optional<Report>& report) {
  if (!report) return nullptr;
  const auto found = std::ranges::find_if(report->sites, [&](const SiteReport& line) { return shows_the_same(site, line); });
  return found == report->sites.end() ? nullptr : &*found;
}

std::string expectation(const SiteReport& site, const Report& report) {
  std::string text = fmt::format("fused={} refused={} missed={}", report.fused(), report.refused(), report.missed());
  if (!site.miss_id.empty()) text += " miss=" + site.miss_id;
  const bool is_alone = report.sites.size() == 1;
  if (!is_alone || site.outcome == Outcome::kMissed) return text;
  if (site.verification) text += " verdict=" + std::string(name_of(site.verification->verdict));
  if (site.outcome != Outcome::kFused) return text;
  text += fmt::format(" form={} past={} scale={}", site.form, site.past ? "yes" : "no", site.scale);
  if (site.kv_heads > 0) text += fmt::format(" kv_heads={}", site.kv_heads);
  if (site.softcap > 0) text += fmt::format(" softcap={}", site.softcap);
  for (const Precondition& condition : site.preconditions)
    text += " precondition=" + condition.id + ":" + std::string(state_of(condition));
  return text;
}

/// The first cut that shows what SITE shows: the nearer nodes, then ever more of them, then with their weights.
Expected<CaseModel> first_cut(CaseCutter& cutter, const SiteReport& site, const CaseBudget& budget, const CaseTest& holds) {
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
Expected<onnx::ModelProto> reduced_model(CaseCutter& cutter, const SiteReport& site, const OptimizeOptions& options,
                                         bool verifying, const CaseBudget& budget) {
  OptimizeOptions trial = options;
  trial.verification.memory_limit = std::min(trial.verification.memory_limit, budget.bytes);
  SiteReport wanted = site;
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

}  // namespace

Expected<std::string> reduced_case(CaseCutter& cutter, const SiteReport& site, OptimizeArguments arguments,
                                   const CasePlace& place, const CaseBudget& budget) {
  ATTN_OPT_TRY(OptimizeOptions options, to_options(arguments));
  ATTN_OPT_TRY(const onnx::ModelProto small, reduced_model(cutter, site, options, has_failed(site), budget));
  SiteReport wanted = site;
  auto report = report_of(small, options);
  if (!line_like(wanted, report) && site.outcome == Outcome::kFused) {
    // Sizes that the whole model has, and its verification with them, may be told by nodes that are not needed for the match.
    arguments.verify = "off";
    options.verify = VerifyMode::kOff;
    wanted.verification.reset();
    report = report_of(small, options);
  }
  const SiteReport* line = line_like(wanted, report);
  if (!line) return fail(ErrorCode::kUnsupported, site.name, "what is left of it depends on its names");
  ATTN_OPT_TRY(const std::string text, print_text(small, place.name));
  for (std::string& folder : arguments.patterns) folder = path_from(place.folder, folder);
  const std::string words = to_words(arguments);
  return "# CASE   " + place.name + "\n# SOURCE reduced from a model by attn-opt\n" +
         (words.empty() ? "" : "# RUN    " + words + "\n") + "# EXPECT " + expectation(*line, *report) + "\n" +
         (report->fused() > 0 ? "# VERIFY off\n" : "") + text;
}

}  // namespace attn_opt
