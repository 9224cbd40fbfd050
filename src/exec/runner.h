// Runs plans and single nodes.
#pragma once

#include "src/exec/functions.h"
#include "src/exec/plan.h"

namespace attn_opt {

/// What one run needs besides the plan.
struct Run {
  const ExecutorOptions& options;
  const TensorStore& tensors;
  FunctionCache& functions;
  ThreadPool& threads;
  size_t live_bytes = 0;
  int depth = 0;       ///< of function calls and bodies
  uint64_t place = 0;  ///< hash of the calls and iterations that lead here: one node may run at many places
};

/// PLAN's outputs for INPUTS (in the plan's order; without value: omitted) and, of a body, OUTER: the values
/// of the enclosing plan.
Outputs run_plan(const Plan& plan, std::vector<Tensor> inputs, std::span<const Tensor> outer, Run& run);

/// Runs a kernel or a function.
Outputs run_op(const onnx::NodeProto& node, const ResolvedOp& op, std::span<const Tensor> inputs, const Opsets& opsets,
               Run& run);

/// Runs If, Loop or Scan; OUTER as for run_plan.
Outputs run_control_flow(const Step& step, std::span<const Tensor> inputs, std::span<const Tensor> outer, Run& run);

/// What a kernel that runs NODE as OP, of a schema, sees.
KernelContext kernel_context(const onnx::NodeProto& node, const ResolvedOp& op, std::span<const Tensor> inputs, const Run& run);

/// Floating tensors in double, where options ask for it.
Expected<Tensor> widened(Tensor tensor, const ExecutorOptions& options);

/// Bytes that may still be allocated.
size_t budget_of(const Run& run);

/// kLimit once the deadline has passed.
Status within_deadline(const ExecutorOptions& options);

}  // namespace attn_opt
