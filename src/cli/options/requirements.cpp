#include "src/cli/options/requirements.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "src/cli/baseline.h"
#include "src/report/findings.h"
#include "src/report/phrases.h"

namespace attn_opt {
namespace {

using Outcome = SiteReport::Outcome;

/// SITE is a rewrite, or of attention.
template <class Site>
bool numbers_differ(const Site& site) {
  return site.outcome == Outcome::kRefused && site.verification && site.verification->verdict == Verdict::kFailed;
}

Status check_mismatches(const Requirements& required, const Report& report) {
  const auto check_all = [](const auto& sites) -> Status {
    for (const auto& site : sites)
      if (numbers_differ(site))
        return fail(ErrorCode::kMismatch, site.name, "numbers differ: " + site.verification->reason,
                    "--on-mismatch skip leaves such sites as they are");
    return {};
  };
  if (!required.fail_on_mismatch) return {};
  ATTN_OPT_CHECK(check_all(report.sites));
  return check_all(report.rewrites);
}

Status check_model_verification(const Report& report) {
  if (!report.model_verification) return {};
  for (const auto& output : report.model_verification->outputs) {
    if (output.agrees) continue;
    return fail(ErrorCode::kMismatch, "output " + output.name, "the whole model's numbers differ: " + output.difference,
                "--verify sites goes by the sites alone");
  }
  return {};
}

/// "1 attention site", "4 attention sites".
std::string counted(int count, const std::string& what) { return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s"); }

/// Too few are fused: the first that is not, and what to run.
tl::unexpected<Error> too_few(const std::string& wanted, const Report& report) {
  const int sites = static_cast<int>(report.sites.size());
  std::string what =
      fmt::format("{} of {} {} fused", report.fused(), counted(sites, "attention site"), sites == 1 ? "is" : "are");
  std::string remedy = "more were not found";
  if (!report.not_raised.empty()) remedy = "attn-opt explain says what stands in the way";
  const auto left = std::ranges::find_if(report.sites, [](const SiteReport& site) { return site.outcome != Outcome::kFused; });
  if (left != report.sites.end()) {
    const auto site = to_json(report).at("sites").at(static_cast<size_t>(left - report.sites.begin()));
    what += ", and not " + title_of(site) + ": " + reason_of(site);
    remedy = report.input.empty() ? "explain says more" : "run: " + explain_command(report.input, site);
  }
  return fail(ErrorCode::kRequirement, "--require-fused " + wanted, what, remedy);
}

Status check_fused(const Requirements& required, const Report& report) {
  const int fused = report.fused(), sites = static_cast<int>(report.sites.size());
  if (required.fused && fused < *required.fused) return too_few(std::to_string(*required.fused), report);
  if (required.all_fused && !required.allow_none && sites == 0 && report.not_raised.empty()) {
    const std::string already = already_phrase(report);
    return fail(ErrorCode::kRequirement, "--require-fused all",
                already.empty() ? "no attention was found in the model" : "nothing is left to be fused: " + already,
                "--allow-none lets models without any pass");
  }
  if (required.all_fused && (fused < sites || !report.not_raised.empty())) return too_few("all", report);
  return {};
}

}  // namespace

Status check_requirements(const Requirements& required, const Report& report) {
  ATTN_OPT_CHECK(check_mismatches(required, report));
  ATTN_OPT_CHECK(check_model_verification(report));
  ATTN_OPT_CHECK(check_fused(required, report));
  if (required.baseline) {
    const nlohmann::json document = to_json(report);
    ATTN_OPT_CHECK(required.baseline->check(document));
    for (const std::string& text : required.baseline->warnings(document)) spdlog::warn("{}", text);
  }
  if (required.check && report.fused() > 0) {
    return fail(ErrorCode::kRequirement, "--check", counted(report.fused(), "attention site") + " can be fused",
                "without --check, -o OUTPUT writes the model with them");
  }
  if (required.check && report.rewritten() > 0) {
    return fail(ErrorCode::kRequirement, "--check", counted(report.rewritten(), "rewrite") + " can be applied",
                "without --check, -o OUTPUT writes the model with them");
  }
  return {};
}

}  // namespace attn_opt
