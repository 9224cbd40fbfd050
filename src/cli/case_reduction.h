// Makes the model around one attention smaller for as long as it shows the same.
#pragma once

#include "src/cli/case_cut.h"

namespace attn_opt {

/// A regression case (docs/cases.md) of the attention that SITE is a line of: the smallest model found that has the same
/// miss, is refused for the same, or is fused to the same. NAME is the case's; RUN_WORDS are the options that OPTIONS are
/// made of. Deterministic. Errors: those of CaseCutter::cut(); kUnsupported, if no part of the model shows the same.
Expected<std::string> reduced_case(CaseCutter& cutter, const SiteReport& site, const OptimizeOptions& options,
                                   const std::string& name, const std::string& run_words);

}  // namespace attn_opt
