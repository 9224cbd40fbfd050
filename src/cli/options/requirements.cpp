#include "src/cli/options/requirements.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "src/cli/baseline.h"

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

Status check_fused(const Requirements& required, const Report& report) {
  const int fused = report.fused(), sites = static_cast<int>(report.sites.size());
  const auto unmet = [&](const std::string& count) {
    return fail(
        ErrorCode::kRequirement, "--require-fused " + count, fmt::format("{} of {} attention sites are fused", fused, sites),
        fused < sites || !report.not_raised.empty() ? "attn-opt explain says what stands in the way" : "more were not found");
  };
  if (required.fused && fused < *required.fused) return unmet(std::to_string(*required.fused));
  if (required.all_fused && !required.allow_none && sites == 0 && report.not_raised.empty())
    return fail(ErrorCode::kRequirement, "--require-fused all", "no attention was found in the model",
                "--allow-none lets models without any pass");
  if (required.all_fused && (fused < sites || !report.not_raised.empty())) return unmet("all");
  return {};
}

}  // namespace

Status check_requirements(const Requirements& required, const Report& report) {
  ATTN_OPT_CHECK(check_mismatches(required, report));
  ATTN_OPT_CHECK(check_model_verification(report));
  ATTN_OPT_CHECK(check_fused(required, report));
  if (required.baseline) {
    ATTN_OPT_CHECK(required.baseline->check(to_json(report)));
  }
  if (required.check && report.fused() > 0) {
    return fail(ErrorCode::kRequirement, "--check", fmt::format("{} attention sites can be fused", report.fused()),
                "without --check, -o OUTPUT writes the model with them");
  }
  if (required.check && report.rewritten() > 0) {
    return fail(ErrorCode::kRequirement, "--check", fmt::format("{} rewrites can be applied", report.rewritten()),
                "without --check, -o OUTPUT writes the model with them");
  }
  return {};
}

}  // namespace attn_opt
