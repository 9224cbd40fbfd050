// The whole run over one model in memory: match, verify, raise, commit, sweep.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "attn_opt/emit_options.h"
#include "attn_opt/executor.h"
#include "attn_opt/model.h"
#include "attn_opt/pattern.h"
#include "attn_opt/report.h"
#include "attn_opt/rewrite.h"
#include "attn_opt/verification.h"

namespace attn_opt {

/// kAllSites: equal sites are run each. kModel: as kSites, and then the whole model before and after.
enum class VerifyMode { kOff, kSites, kAllSites, kModel };

/// How the whole model is run.
struct ModelTrial {
  std::string test_data;                 ///< folder of ONNX test data for the inputs; empty: they are drawn
  std::map<std::string, int64_t> sizes;  ///< of symbolic dimensions of drawn inputs
  int draws = 3;
  std::optional<double> relative, absolute;  ///< what values may differ by; else that of their type
  int threads = 0;                           ///< 0: one for each processor
  size_t memory_limit = ExecutorOptions().memory_limit;
};

/// What becomes of caches that grow with each step.
struct KvCacheOptions {
  bool is_static = false;  ///< they become buffers: the model is called otherwise
  int64_t length = 0;      ///< rows of the buffers; 0: a symbol
};

/// What optimize() is to do; the defaults are those of the command.
struct OptimizeOptions {
  int opset = kEditOpset;                                ///< a floor: a model above it is never lowered; or kOwnOpset
  std::vector<std::string> only, disable;                ///< names of patterns and rewrites
  std::vector<std::shared_ptr<const Pattern>> rules;     ///< patterns beside the registered ones (rules.h)
  std::vector<std::shared_ptr<const Rewrite>> rewrites;  ///< beside the registered ones (rewrite.h): these are on
  std::vector<std::string> also;                         ///< names of registered rewrites that are on, too, or "all"
  std::map<std::string, int> priorities;                 ///< of rewrites, by name, in the place of their own; of patterns
  int most_rounds = 16;  ///< of rewriting, each over the whole model; what is left then is in the report
  EmitOptions emit;
  KvCacheOptions kv_cache;
  VerifyMode verify = VerifyMode::kSites;
  ModelTrial trial;  ///< with kModel
  VerifyOptions verification;
  bool strict = false;  ///< assume nothing: only proven preconditions and refinements, only verified sites
  bool exact = false;   ///< as strict, and without refinements: what was NaN stays NaN
  std::optional<std::vector<std::string>>
      assume;                     ///< ids of the preconditions that may be assumed; without: all, or none if strict
  bool allow_unverified = false;  ///< fuse sites that could not be run, too; not if strict
  int stop_after = -1;            ///< commit at most so many sites and rewrites; negative: all
  bool draw = false;              ///< enter into the report what each site was and became
  std::set<std::string> leave;    ///< names of sites, and of rewrites' commits, that are left as they are
  /// Called with the model's view and the name of the site after each commit; a rewrite's is "REWRITE at NODE".
  std::function<void(const ModelGraph& view, const std::string& site)> on_commit;
  /// Called with each condition that kept a pattern or rewrite, by name, from matching at a node.
  std::function<void(std::string_view pattern, const Node& node, const Miss& miss)> trace;
  /// Called with what is being done and how far it is, 0 to 1.
  std::function<void(std::string_view step, double part)> progress;
};

/// That what OPTIONS write can be written at their opset. Error: kUsage.
Status check_opset(const OptimizeOptions& options);

/// What OPTIONS let be assumed. Error: kUsage (an id in `assume` that no precondition has).
Expected<AcceptedAssumptions> accepted_by(const OptimizeOptions& options);

/// What a run builds over a model. Freeing it node by node takes half as long as matching: a program that ends with its
/// process may hold it till then.
using Workings = std::shared_ptr<const void>;

/// Rewrites MODEL in place. If nothing is fused, or the opset cannot be raised, the model is left as it was (report.changed
/// is false). Errors: kInvalidInput (the graph does not hold together), kUsage (unknown name of a pattern or a precondition);
/// with kModel also those of running the model (kUnsupported, kLimit, kInvalidInput). That outputs differ is no error but in
/// the report. What was built over MODEL is freed at the end, or left to WORKINGS.
Expected<Report> optimize(Model& model, const OptimizeOptions& options, Workings* workings = nullptr);

}  // namespace attn_opt
