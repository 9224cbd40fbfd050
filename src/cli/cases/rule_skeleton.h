// One attention of a model as a rule to be completed (docs/rules.md).
#pragma once

#include <filesystem>
#include <string>

#include "src/cli/cases/case_cut.h"

namespace attn_opt {

/// The text of a rule called NAME whose pattern is the part of the model around SITE, without a name of the user's, and whose
/// replacement is a first reading of it: scales, and a mask that is added or selects. It loads; comments in it say what the
/// replacement leaves out. Errors: those of CaseCutter::place_of() and rule_part(); kUnsupported (a node that no rule can
/// spell).
Expected<std::string> rule_skeleton(CaseCutter& cutter, const SiteReport& site, const std::string& name);

}  // namespace attn_opt
