// The whole run over one model in memory: match, verify, raise, commit, sweep.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "attn_opt/emit.h"
#include "attn_opt/model.h"
#include "attn_opt/report.h"
#include "attn_opt/verifier.h"

namespace attn_opt {

enum class VerifyMode { kOff, kSites, kAllSites };

struct OptimizeOptions {
  int opset = 24;                          ///< a floor: a model above it is never lowered
  std::vector<std::string> only, disable;  ///< names of patterns
  EmitOptions emit;
  VerifyMode verify = VerifyMode::kSites;  ///< kAllSites: equal sites are run each
  VerifyOptions verification;
  bool strict = false;                     ///< only preconditions that are proven, only verified sites
  int stop_after = -1;                     ///< commit at most so many sites; negative: all
  /// Called with what is being done and how far it is, 0 to 1.
  std::function<void(std::string_view step, double part)> progress;
};

/// What a run builds over a model. Freeing it node by node takes half as long as matching: a program that ends with its
/// process may hold it till then.
using Workings = std::shared_ptr<const void>;

/// Rewrites MODEL in place. If nothing is fused, or the opset cannot be raised, the model is left as it was (report.changed
/// is false). Errors: kInvalidInput (the graph does not hold together), kUsage (unknown pattern name).
/// What was built over MODEL is freed at the end, or left to WORKINGS.
Expected<Report> optimize(Model& model, const OptimizeOptions& options, Workings* workings = nullptr);

}  // namespace attn_opt
