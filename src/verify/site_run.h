// Runs both sides of a site on one set of inputs and judges the results.
#pragma once

#include <chrono>

#include "src/verify/draws.h"
#include "src/verify/judge.h"

namespace attn_opt {

struct RunLimits {
  size_t memory = 0;
  std::chrono::nanoseconds cpu_deadline{};
};

/// What one set of inputs showed.
struct RunResult {
  Judgement algebra, in_type;
};

/// The executors of a site: each side in double and as written.
class SiteRunner {
 public:
  /// What went wrong, and on which side: an edit that cannot run where the model can is wrong.
  struct Failure {
    Error error;
    bool is_after = false;
  };
  using Result = tl::expected<RunResult, Failure>;

  /// SITE, MODELS and TENSORS must outlive the runner.
  static tl::expected<SiteRunner, Failure> create(const CutSite& site, const SiteModels& models, const TensorStore& tensors,
                                                  const RunLimits& limits);

  Result run(const Feeds& feeds, const Sdpa& sdpa, const SizeAssignment& sizes, const Assumed& assumed) const;

 private:
  struct Sides {
    Executor before, after;
  };
  SiteRunner(const CutSite& site, Sides exact, Sides typed);

  enum class Mode { kExact, kTyped };
  static tl::expected<Sides, Failure> sides(const onnx::ModelProto& before, const onnx::ModelProto& after,
                                            const TensorStore& tensors, const ExecutorOptions& options);
  std::string unportable_input(const Feeds& feeds, const std::vector<Tensor>& after) const;
  /// EXACT: what the side before makes in double, which the mode of that name fills in and the other is judged by. OWN: what it
  /// makes in its own types, if that is to excuse differences in double.
  tl::expected<Judgement, Failure> run_mode(Mode mode, const Feeds& feeds, const Sdpa& sdpa, const SizeAssignment& sizes,
                                            const Assumed& assumed, std::vector<Tensor>& exact,
                                            const std::vector<Tensor>* own = nullptr) const;

  const CutSite* site_;
  Sides exact_, typed_;
  std::optional<DataType> finest_cast_;
  double constant_rounding_;  ///< of the coarsest type that a constant of the site is held in
};

}  // namespace attn_opt
