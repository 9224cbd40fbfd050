// Makes the model around one attention smaller for as long as it shows the same.
#pragma once

#include <filesystem>
#include <string>

#include "src/cli/cases/case_cut.h"
#include "src/cli/options/optimize_arguments.h"

namespace attn_opt {

/// What making a case may cost. The smallest model found by then is the case.
struct CaseBudget {
  double seconds = 60;               ///< 0: as long as it takes
  size_t bytes = size_t{256} << 20;  ///< of the constants of a model that is tried, and of what verifying its site holds
};

struct CasePlace {
  std::string name;
  std::filesystem::path folder;  ///< paths in the case are relative to it
};

/// A regression case (docs/cases.md) of what SITE is a line of, an attention or a place of a rewrite: the smallest model found
/// that has the same miss, is refused for the same, or becomes the same: verified like it, or else without verification.
/// Deterministic, unless BUDGET ends it. Errors: those of CaseCutter::cut() and to_options(); kUnsupported, if no part of the
/// model shows the same; kLimit, if none was found within BUDGET.
Expected<std::string> reduced_case(CaseCutter& cutter, const SiteReport& site, OptimizeArguments arguments,
                                   const CasePlace& place, const CaseBudget& budget);
Expected<std::string> reduced_case(CaseCutter& cutter, const RewriteReport& site, OptimizeArguments arguments,
                                   const CasePlace& place, const CaseBudget& budget);

}  // namespace attn_opt
