// Rewrites of a whole model, round by round, until none is left.
#pragma once

#include <functional>
#include <vector>

#include "attn_opt/optimizer.h"

namespace attn_opt {

/// A rewrite that is on, and its priority.
struct ChosenRewrite {
  const Rewrite* rewrite = nullptr;
  int priority = 0;
};

/// The rewrites that OPTIONS ask for, the highest priority first. Error: kUsage for a name that no rewrite has.
Expected<std::vector<ChosenRewrite>> chosen_rewrites(const OptimizeOptions& options);

/// Applies CHOSEN to MODEL in place until nothing is left to do or the rounds are over, and enters what came of it into REPORT.
/// At most LEFT are committed (negative: any number), which is counted down. MODEL is changed only if some were. Errors: those
/// of optimize().
Status rewrite_model(Model& model, const std::vector<ChosenRewrite>& chosen, const OptimizeOptions& options, int& left,
                     Report& report);

/// Enters into REPORT, that of the attention, what REWRITTEN says.
void merge(Report&& rewritten, Report& report);

}  // namespace attn_opt
