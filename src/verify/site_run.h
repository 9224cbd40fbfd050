// Runs both sides of a site on one set of inputs and judges the results.
#pragma once

#include <chrono>

#include "src/verify/attribute_moves.h"
#include "src/verify/draws.h"
#include "src/verify/judge.h"
#include "src/verify/site_models.h"

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
  /// What double makes of one set of inputs.
  struct Exact {
    std::vector<Tensor> before, moves;  ///< of the side before; of the side after, as AttributeMoves
  };
  SiteRunner(const CutSite& site, Sides exact, Sides typed, AttributeMoves moves, bool casts_in_functions);

  enum class Mode { kExact, kTyped };
  static tl::expected<Sides, Failure> sides(const onnx::ModelProto& before, const onnx::ModelProto& after,
                                            const TensorStore& tensors, const ExecutorOptions& options);
  std::string unportable_input(const Feeds& feeds, const std::vector<Tensor>& after) const;
  /// EXACT is filled in by the mode of that name, and the other is judged by it.
  tl::expected<Judgement, Failure> run_mode(Mode mode, const Feeds& feeds, const Sdpa& sdpa, const SizeAssignment& sizes,
                                            const Assumed& assumed, Exact& exact) const;

  const CutSite* site_;
  Sides exact_, typed_;
  AttributeMoves moves_;
  std::optional<DataType> finest_cast_;
  double constant_rounding_;  ///< of the coarsest type that a constant of the site is held in
  bool casts_in_functions_;   ///< constants, perhaps, which that rounds
};

}  // namespace attn_opt
