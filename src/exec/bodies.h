// What If, Loop and Scan share: their bodies, and outputs that grow by one item an iteration.
#pragma once

#include "src/exec/runner.h"

namespace attn_opt {

/// The graph attribute NAME of the step's node and its plan; null if it is missing.
const onnx::GraphProto* find_body(const Step& step, const char* name, const Plan** plan);

/// Runs the body PLAN as iteration I of its node; OUTER as for run_plan.
Outputs run_iteration(const Plan& plan, int64_t i, std::vector<Tensor> arguments, std::span<const Tensor> outer, Run& run);

/// What each iteration adds to one scan output.
class Stack {
 public:
  Status push(const KernelContext& context, Tensor item);
  /// COUNT items that are 0.
  Status push_zeros(const KernelContext& context, int64_t count);

  /// The items along a new axis; DECLARED tells type and shape when there are none.
  Expected<Tensor> join(const KernelContext& context, const onnx::ValueInfoProto& declared, int64_t axis, bool reversed);

 private:
  std::vector<Tensor> items_;  ///< without value: 0
  Tensor first_;               ///< of those with a value
  size_t bytes_ = 0;
};

Outputs run_scan(const Step& step, std::span<const Tensor> inputs, std::span<const Tensor> outer, Run& run);

}  // namespace attn_opt
