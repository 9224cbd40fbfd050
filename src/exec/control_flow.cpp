// If and Loop.
#include "src/exec/bodies.h"

namespace attn_opt {
namespace {

Expected<bool> truth(const KernelContext& context, const Tensor& tensor) {
  if (tensor.type() != onnx::TensorProto::BOOL || tensor.size() != 1) {
    return context.invalid("the condition is not one bool");
  }
  return tensor.data<bool>()[0];
}

Outputs run_if(const Step& step, std::span<const Tensor> inputs, std::span<const Tensor> outer, Run& run) {
  const KernelContext context = kernel_context(*step.node, step.op, inputs, run);
  ATTN_OPT_TRY(const bool condition, truth(context, inputs[0]));
  const Plan* plan = nullptr;
  if (find_body(step, condition ? "then_branch" : "else_branch", &plan) == nullptr) {
    return context.invalid("a branch is missing");
  }
  return run_plan(*plan, {}, outer, run);
}

Outputs run_loop(const Step& step, std::span<const Tensor> inputs, std::span<const Tensor> outer, Run& run) {
  const KernelContext context = kernel_context(*step.node, step.op, inputs, run);
  const Plan* plan = nullptr;
  const auto* body = find_body(step, "body", &plan);
  const size_t carried = inputs.size() < 2 ? 0 : inputs.size() - 2;
  if (body == nullptr || plan->inputs.size() != carried + 2 || plan->outputs.size() < carried + 1) {
    return context.invalid("the body does not fit the node");
  }
  int64_t most = std::numeric_limits<int64_t>::max();
  if (context.has(0)) {
    ATTN_OPT_TRY(const auto trip_count, context.integers(inputs[0]));
    if (trip_count.size() != 1) return context.invalid("the trip count is not a scalar");
    most = trip_count[0];
  }
  bool goes_on = true;
  if (context.has(1)) {
    ATTN_OPT_TRY(goes_on, truth(context, inputs[1]));
  }
  std::vector<Tensor> state(inputs.begin() + static_cast<int64_t>(std::min<size_t>(2, inputs.size())), inputs.end());
  std::vector<Stack> stacks(plan->outputs.size() - carried - 1);
  for (int64_t i = 0; i < most && goes_on; ++i) {
    std::vector<Tensor> arguments{Tensor::scalar<int64_t>(i), Tensor::scalar<bool>(goes_on)};
    std::ranges::move(state, std::back_inserter(arguments));
    ATTN_OPT_TRY(auto results, run_iteration(*plan, i, std::move(arguments), outer, run));
    ATTN_OPT_TRY(goes_on, truth(context, results[0]));
    const auto scanned = results.begin() + static_cast<int64_t>(carried) + 1;
    state.assign(std::make_move_iterator(results.begin() + 1), std::make_move_iterator(scanned));
    for (size_t k = 0; k < stacks.size(); ++k) {
      ATTN_OPT_CHECK(stacks[k].push(context, std::move(scanned[static_cast<int64_t>(k)])));
    }
  }
  for (size_t k = 0; k < stacks.size(); ++k) {
    ATTN_OPT_TRY(Tensor joined, stacks[k].join(context, body->output(static_cast<int>(carried + 1 + k)), 0, false));
    state.push_back(std::move(joined));
  }
  return state;
}

}  // namespace

Outputs run_control_flow(const Step& step, std::span<const Tensor> inputs, std::span<const Tensor> outer, Run& run) {
  if (step.node->op_type() == "If") return run_if(step, inputs, outer, run);
  if (step.node->op_type() == "Loop") return run_loop(step, inputs, outer, run);
  return run_scan(step, inputs, outer, run);
}

}  // namespace attn_opt
