// Cases that are written out: of one site, or of every match.
#pragma once

#include <filesystem>

#include "attn_opt/report.h"
#include "src/cli/cases/case_reduction.h"
#include "src/cli/options/optimize_arguments.h"

namespace attn_opt {

/// Writes the case of SITE, a line of what MODEL was optimised to, to PATH; "-" is standard output.
/// Errors: those of reduced_case(), kOutput.
Status write_case(Model model, const SiteReport& site, const OptimizeArguments& arguments, const std::filesystem::path& path,
                  const CaseBudget& budget);
Status write_case(Model model, const RewriteReport& site, const OptimizeArguments& arguments, const std::filesystem::path& path,
                  const CaseBudget& budget);

/// Writes SITE, likewise, as the skeleton of a rule to PATH. Errors: those of rule_skeleton(), kOutput.
Status write_rule(Model model, const SiteReport& site, const OptimizeArguments& arguments, const std::filesystem::path& path);

struct WrittenMatches {
  int cases = 0;
  std::vector<Error> left_out;  ///< sites of which no part of the model shows the same
};

/// Writes a case for every fused site of REPORT, equal ones once, to FOLDER/match_N.onnxtxt, each within the default budget.
/// MODEL is as it was before. Error: kOutput.
Expected<WrittenMatches> write_matches(Model model, const Report& report, const OptimizeArguments& arguments,
                                       const std::filesystem::path& folder);

}  // namespace attn_opt
