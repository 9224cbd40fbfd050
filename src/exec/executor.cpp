#include "attn_opt/executor.h"

#include "src/exec/runner.h"
#include "src/exec/spare_memory.h"

namespace attn_opt {

struct Executor::Impl {
  Impl(const TensorStore& store, ExecutorOptions given, LocalFunctions local)
      : tensors(store),
        options(std::move(given)),
        functions(options.schema_bodies, std::move(local)),
        threads(options.threads) {}

  const TensorStore& tensors;
  ExecutorOptions options;
  mutable FunctionCache functions;
  mutable ThreadPool threads;
  std::unique_ptr<Plan> plan;
  SpareMemory spare_memory;
};

Executor::Executor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Executor::Executor(Executor&&) noexcept = default;
Executor& Executor::operator=(Executor&&) noexcept = default;
Executor::~Executor() = default;

Expected<Executor> Executor::create(const onnx::ModelProto& model, const TensorStore& tensors, ExecutorOptions options) {
  LocalFunctions local;
  for (const auto& function : model.functions()) {
    local[function_key(function.domain(), function.name(), function.overload())] = &function;
  }
  Opsets opsets;
  for (const auto& import : model.opset_import()) {
    opsets[canonical_domain(import.domain())] = static_cast<int>(import.version());
  }
  auto impl = std::make_unique<Impl>(tensors, std::move(options), std::move(local));
  ATTN_OPT_TRY(impl->plan, plan_graph(model.graph(), opsets, impl->functions.functions(), impl->options.schema_bodies));
  return Executor(std::move(impl));
}

Expected<std::vector<Tensor>> Executor::run(const Feeds& feeds) const {
  const Plan& plan = *impl_->plan;
  std::vector<Tensor> inputs(plan.inputs.size());
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    const auto feed = feeds.find(plan.input_names[i]);
    if (feed != feeds.end()) {
      ATTN_OPT_TRY(inputs[i], widened(feed->second, impl_->options));
    } else if (plan.initializers[static_cast<size_t>(plan.inputs[i])] == nullptr &&
               !plan.sparse_initializers.contains(plan.inputs[i])) {
      return fail(ErrorCode::kInvalidInput, plan.input_names[i], "no value is given for this input");
    }
  }
  Run run{impl_->options, impl_->tensors, impl_->functions, impl_->threads};
  return run_plan(plan, std::move(inputs), {}, run);
}

}  // namespace attn_opt
