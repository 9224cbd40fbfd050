// Makes the model around one attention smaller for as long as it shows the same.
#pragma once

#include <filesystem>
#include <string>

#include "src/cli/case_cut.h"
#include "src/cli/optimize_arguments.h"

namespace attn_opt {

struct CasePlace {
  std::string name;
  std::filesystem::path folder;  ///< paths in the case are relative to it
};

/// A regression case (docs/cases.md) of the attention that SITE is a line of: the smallest model found that has the same
/// miss, is refused for the same, or is fused to the same: verified like it, or else without verification.
/// Deterministic. Errors: those of CaseCutter::cut() and to_options(); kUnsupported, if no part of the model shows
/// the same.
Expected<std::string> reduced_case(CaseCutter& cutter, const SiteReport& site, OptimizeArguments arguments,
                                   const CasePlace& place);

}  // namespace attn_opt
