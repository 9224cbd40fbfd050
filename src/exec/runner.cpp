#include "src/exec/runner.h"

#include <ctime>
#include <new>
#include <utility>

#include "src/exec/layout/random_numbers.h"
#include "src/exec/layout/sparse.h"

namespace attn_opt {
namespace {

constexpr int kDeepestCalls = 64;

Status check_inputs(const onnx::NodeProto& node, const ResolvedOp& op, std::span<const Tensor> inputs) {
  if (op.schema == nullptr) return {};
  const auto missing = [&](size_t i) {
    return fail(ErrorCode::kInvalidInput, describe(node), node.op_type() + ": input " + std::to_string(i) + " is missing");
  };
  if (static_cast<int>(inputs.size()) < op.schema->min_input()) return missing(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool required = op.variadic || static_cast<int>(i) < op.required_inputs;
    if (required && !inputs[i].has_value()) return missing(i);
  }
  if (static_cast<int>(inputs.size()) > op.schema->max_input()) {
    return fail(ErrorCode::kInvalidInput, describe(node), node.op_type() + ": too many inputs");
  }
  return {};
}

bool casts_to_floating(const onnx::NodeProto& node) {
  if (node.op_type() != "Cast") return false;
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() == "to") return is_floating(static_cast<DataType>(attribute.i()));
  }
  return false;
}

Outputs run_kernel(const onnx::NodeProto& node, const ResolvedOp& op, std::span<const Tensor> inputs, Run& run) {
  if (run.options.compute_f64 && casts_to_floating(node)) {
    return single(inputs[0].cast(onnx::TensorProto::DOUBLE));
  }
  const KernelContext context = kernel_context(node, op, inputs, run);
  try {
    return op.kernel(context);
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::kLimit, describe(node), node.op_type() + ": out of memory");
  } catch (const std::length_error&) {
    return fail(ErrorCode::kLimit, describe(node), node.op_type() + ": out of memory");
  }
}

Outputs run_function(const onnx::NodeProto& node, const ResolvedOp& op, std::span<const Tensor> inputs, const Opsets& opsets,
                     Run& run) {
  if (run.depth >= kDeepestCalls) {
    return fail(ErrorCode::kLimit, describe(node), "functions call each other too deep");
  }
  ATTN_OPT_TRY(const auto body, run.functions.body(node, op, inputs, opsets));
  if (inputs.size() > body->plan->inputs.size()) {
    return fail(ErrorCode::kInvalidInput, describe(node), node.op_type() + ": too many inputs");
  }
  std::vector<Tensor> arguments(inputs.begin(), inputs.end());
  arguments.resize(body->plan->inputs.size());
  ++run.depth;
  const uint64_t outer = std::exchange(run.place, hash_bytes(describe(node), hash_number(run.place)));
  auto outputs = run_plan(*body->plan, std::move(arguments), {}, run);
  run.place = outer;
  --run.depth;
  if (!outputs) outputs.error().where = describe(node) + ": " + outputs.error().where;
  return outputs;
}

/// The values of one plan while it runs.
class Frame {
 public:
  Frame(const Plan& plan, Run& run) : plan_(plan), run_(run), values_(plan.slots()) {}

  void set(int slot, Tensor value) {
    if (slot < 0) return;
    Tensor& held = values_[static_cast<size_t>(slot)];
    held = std::move(value);
    run_.live_bytes += held.exclusive_bytes();
  }

  void release(int slot) {
    Tensor& held = values_[static_cast<size_t>(slot)];
    run_.live_bytes -= std::min(run_.live_bytes, held.exclusive_bytes());
    held = Tensor();
  }

  /// Reads an initializer on first use.
  Status load(int slot) {
    if (slot < 0 || values_[static_cast<size_t>(slot)].has_value()) return {};
    Tensor tensor;
    if (const auto* initializer = plan_.initializers[static_cast<size_t>(slot)]; initializer != nullptr) {
      ATTN_OPT_TRY(tensor, to_tensor(*initializer, run_.tensors));
    } else if (const auto sparse = plan_.sparse_initializers.find(slot); sparse != plan_.sparse_initializers.end()) {
      ATTN_OPT_TRY(tensor, to_dense(*sparse->second, run_.tensors, budget_of(run_)));
    } else {
      return {};
    }
    ATTN_OPT_TRY(tensor, widened(std::move(tensor), run_.options));
    set(slot, std::move(tensor));
    return {};
  }

  Expected<std::vector<Tensor>> read(const std::vector<int>& slots) {
    std::vector<Tensor> tensors;
    tensors.reserve(slots.size());
    for (const int slot : slots) {
      ATTN_OPT_CHECK(load(slot));
      tensors.push_back(slot < 0 ? Tensor() : values_[static_cast<size_t>(slot)]);
    }
    return tensors;
  }

  Outputs run_step(const Step& step) {
    ATTN_OPT_TRY(const auto inputs, read(step.inputs));
    if (!run_.options.on_node) return run_on(step, inputs);
    const auto start = std::chrono::steady_clock::now();
    auto outputs = run_on(step, inputs);
    const std::span<const Tensor> made = outputs ? std::span<const Tensor>(*outputs) : std::span<const Tensor>();
    run_.options.on_node({*step.node, inputs, made, start, std::chrono::steady_clock::now(), run_.depth});
    return outputs;
  }

  Outputs run_on(const Step& step, std::span<const Tensor> inputs) {
    if (step.op.implementation != Implementation::kControlFlow) {
      return run_op(*step.node, step.op, inputs, plan_.opsets, run_);
    }
    for (const auto& body : step.bodies) {
      for (const auto& capture : body->captures) ATTN_OPT_CHECK(load(capture.outer));
    }
    ATTN_OPT_CHECK(check_inputs(*step.node, step.op, inputs));
    if (run_.depth >= kDeepestCalls) {
      return fail(ErrorCode::kLimit, describe(*step.node), "bodies are nested too deep");
    }
    ++run_.depth;
    auto outputs = run_control_flow(step, inputs, values_, run_);
    --run_.depth;
    return outputs;
  }

  Status store(const Step& step, std::vector<Tensor> outputs) {
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      if (step.outputs[i] < 0) continue;
      const bool may_be_absent = step.op.implementation == Implementation::kLocalFunction;
      if (i >= outputs.size() || (!outputs[i].has_value() && !may_be_absent)) {
        return fail(ErrorCode::kUnsupported, describe(*step.node),
                    "unsupported: output " + std::to_string(i) + " of " + step.node->op_type());
      }
      set(step.outputs[i], std::move(outputs[i]));
    }
    for (const int slot : step.releases) release(slot);
    if (run_.live_bytes <= run_.options.memory_limit) return {};
    return fail(ErrorCode::kLimit, describe(*step.node), "tensors in use pass the memory limit");
  }

  Outputs finish() {
    ATTN_OPT_TRY(auto outputs, read(plan_.outputs));
    for (size_t slot = 0; slot < values_.size(); ++slot) release(static_cast<int>(slot));
    return outputs;
  }

 private:
  const Plan& plan_;
  Run& run_;
  std::vector<Tensor> values_;
};

}  // namespace

KernelContext kernel_context(const onnx::NodeProto& node, const ResolvedOp& op, std::span<const Tensor> inputs,
                             const Run& run) {
  return {node, inputs, op.version, run.tensors, budget_of(run), run.threads, run.place, run.options.compute_f64};
}

Expected<Tensor> widened(Tensor tensor, const ExecutorOptions& options) {
  if (!options.compute_f64 || !is_floating(tensor.type())) return tensor;
  return tensor.cast(onnx::TensorProto::DOUBLE);
}

size_t budget_of(const Run& run) {
  const size_t limit = run.options.memory_limit;
  return limit > run.live_bytes ? limit - run.live_bytes : 0;
}

std::chrono::nanoseconds thread_cpu_time() {
#ifdef CLOCK_THREAD_CPUTIME_ID
  if (timespec time{}; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0)
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
#endif
  return std::chrono::steady_clock::now().time_since_epoch();
}

Status within_deadline(const ExecutorOptions& options) {
  const bool has_passed = (options.deadline && std::chrono::steady_clock::now() > *options.deadline) ||
                          (options.cpu_deadline && thread_cpu_time() > *options.cpu_deadline);
  if (!has_passed) return {};
  return fail(ErrorCode::kLimit, "", "the time limit has passed");
}

Outputs run_op(const onnx::NodeProto& node, const ResolvedOp& op, std::span<const Tensor> inputs, const Opsets& opsets,
               Run& run) {
  ATTN_OPT_CHECK(check_inputs(node, op, inputs));
  auto outputs = op.implementation == Implementation::kKernel ? run_kernel(node, op, inputs, run)
                                                              : run_function(node, op, inputs, opsets, run);
  if (!outputs || !run.options.compute_f64) return outputs;
  for (Tensor& output : *outputs) {
    ATTN_OPT_TRY(output, widened(std::move(output), run.options));
  }
  return outputs;
}

Outputs run_plan(const Plan& plan, std::vector<Tensor> inputs, std::span<const Tensor> outer, Run& run) {
  Frame frame(plan, run);
  for (size_t i = 0; i < plan.inputs.size() && i < inputs.size(); ++i) {
    frame.set(plan.inputs[i], std::move(inputs[i]));
  }
  inputs.clear();
  for (const auto& capture : plan.captures) {
    frame.set(capture.inner, outer[static_cast<size_t>(capture.outer)]);
  }
  for (const Step& step : plan.steps) {
    ATTN_OPT_CHECK(within_deadline(run.options));
    ATTN_OPT_TRY(auto outputs, frame.run_step(step));
    ATTN_OPT_CHECK(frame.store(step, std::move(outputs)));
  }
  return frame.finish();
}

}  // namespace attn_opt
