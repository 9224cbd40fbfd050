// Makes the model around one attention smaller for as long as it shows the same.
#pragma once

#include "src/cli/case_cut.h"
#include "src/cli/optimize_arguments.h"

namespace attn_opt {

/// A regression case (docs/cases.md) of the attention that SITE is a line of: the smallest model found that has the same
/// miss, is refused for the same, or is fused to the same: verified like it, or else without verification. NAME is the
/// case's. Deterministic. Errors: those of CaseCutter::cut() and to_options(); kUnsupported, if no part of the model shows
/// the same.
Expected<std::string> reduced_case(CaseCutter& cutter, const SiteReport& site, OptimizeArguments arguments,
                                   const std::string& name);

}  // namespace attn_opt
