// Runs ONNX graphs on the CPU: what verification stands on.
//
// Primitive operators and some others have kernels written here; an operator that ONNX defines as a function and that
// has no kernel, or for which ExecutorOptions::schema_bodies says so, is expanded through its schema's body and run. An
// operator with neither is Error kUnsupported with the message
// "unsupported: DOMAIN::OP (opset N)".
//
//   ATTN_OPT_TRY(auto executor, Executor::create(model, tensors, {}));
//   ATTN_OPT_TRY(auto outputs, executor.run({{"x", x}}));
#pragma once

#include <onnx/onnx_pb.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "attn_opt/model.h"
#include "attn_opt/status.h"
#include "attn_opt/tensor.h"

namespace attn_opt {

/// Versions of the operator sets that nodes are of, by domain ("" for ai.onnx).
using Opsets = std::unordered_map<std::string, int>;

/// A node that was run, or failed to.
struct NodeRun {
  const onnx::NodeProto& node;
  std::span<const Tensor> inputs, outputs;
  std::chrono::steady_clock::time_point start, end;
  int depth;  ///< of the function or body that the node is in; 0: the model's graph
};

/// Which of the operators that ONNX defines as functions run through their schema's body.
enum class SchemaBodies {
  kWithoutKernel,  ///< those without a kernel here
  kAttention,      ///< and Attention: what is judged by it is judged by ONNX's own definition
  kAlways,         ///< all of them, to test kernels against
};

/// How a model is run, and its limits.
struct ExecutorOptions {
  /// Every floating tensor is held and computed in double, constants widened from the value they have in their type.
  bool compute_f64 = false;
  size_t memory_limit = size_t{4} << 30;                          ///< bytes of live tensors; beyond it: kLimit
  std::optional<std::chrono::steady_clock::time_point> deadline;  ///< checked between nodes; beyond it: kLimit
  std::optional<std::chrono::nanoseconds> cpu_deadline;           ///< the same of the running thread's thread_cpu_time()
  int threads = 1;  ///< that the kernels' loops use, 0: one for each processor; results do not depend on it
  std::function<void(const NodeRun&)> on_node;  ///< called after each node
  SchemaBodies schema_bodies = SchemaBodies::kWithoutKernel;
};

/// Inputs by name.
using Feeds = std::unordered_map<std::string, Tensor>;

/// One model, ready to be run any number of times.
class Executor {
 public:
  /// MODEL and TENSORS must outlive the executor. Initializers are read on first use.
  static Expected<Executor> create(const onnx::ModelProto& model, const TensorStore& tensors, ExecutorOptions options);
  Executor(Executor&&) noexcept;
  Executor& operator=(Executor&&) noexcept;
  ~Executor();

  /// The graph's outputs in their order. FEEDS must hold every graph input without initializer and may override those
  /// with one. Errors: kInvalidInput (missing feed, shapes that do not fit), kUnsupported, kLimit; `where` names the node.
  Expected<std::vector<Tensor>> run(const Feeds& feeds) const;

 private:
  struct Impl;
  explicit Executor(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Runs one node. An omitted optional input is a Tensor without value. Nodes with graph attributes are kUnsupported.
Expected<std::vector<Tensor>> run_node(const onnx::NodeProto& node, std::span<const Tensor> inputs, const Opsets& opsets,
                                       const ExecutorOptions& options = {});

/// CPU time that the calling thread has taken: what else runs on the machine adds nothing to it. On systems without such a
/// clock, the time that passes.
std::chrono::nanoseconds thread_cpu_time();

/// True if NODE can be run: it has a kernel for its version, or a schema body made of such nodes.
bool can_run(const onnx::NodeProto& node, const Opsets& opsets);

/// True for operators whose result is not a function of their inputs (RandomNormal, Bernoulli, training Dropout, ...).
bool is_random(const onnx::NodeProto& node);

}  // namespace attn_opt
