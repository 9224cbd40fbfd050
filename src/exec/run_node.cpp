#include <array>
#include <map>

#include "src/exec/runner.h"

namespace attn_opt {
namespace {

constexpr int kDeepestBodies = 32;

bool has_body(const onnx::NodeProto& node) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_g() || attribute.graphs_size() > 0) return true;
  }
  return false;
}

bool runs(const onnx::NodeProto& node, const Opsets& opsets, int depth);

template <class Nodes>
bool all_run(const Nodes& nodes, const Opsets& opsets, int depth) {
  for (const auto& node : nodes) {
    if (!runs(node, opsets, depth)) return false;
  }
  return true;
}

/// A body built for float inputs of unknown shape stands for those of all types.
bool schema_body_runs(const onnx::NodeProto& node, const onnx::OpSchema& schema, const Opsets& opsets, int depth) {
  std::vector<onnx::TypeProto> types(static_cast<size_t>(node.input_size()));
  for (int i = 0; i < node.input_size(); ++i) {
    if (!node.input(i).empty()) {
      types[static_cast<size_t>(i)].mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
    }
  }
  const auto function = schema_function(node, schema, opset_of(opsets, node.domain()), types);
  if (!function) return false;
  Opsets own = opsets;
  for (const auto& import : function->opset_import()) {
    own[canonical_domain(import.domain())] = static_cast<int>(import.version());
  }
  return all_run(function->node(), own, depth + 1);
}

bool runs(const onnx::NodeProto& node, const Opsets& opsets, int depth) {
  if (depth > kDeepestBodies) return false;
  const ResolvedOp& op = resolve(node, opsets);
  switch (op.implementation) {
    case Implementation::kKernel: return true;
    case Implementation::kSchemaFunction: return schema_body_runs(node, *op.schema, opsets, depth);
    case Implementation::kControlFlow:
      for (const auto& attribute : node.attribute()) {
        if (attribute.has_g() && !all_run(attribute.g().node(), opsets, depth + 1)) return false;
      }
      return true;
    default: return false;
  }
}

bool draws(const onnx::NodeProto& node) {
  constexpr std::array<std::string_view, 6> kRandom{"RandomNormal",      "RandomNormalLike", "RandomUniform",
                                                    "RandomUniformLike", "Multinomial",      "Bernoulli"};
  if (std::ranges::find(kRandom, node.op_type()) != kRandom.end()) return true;
  if (node.op_type() != "Dropout") return false;
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() == "is_test") return attribute.i() == 0;
  }
  return node.input_size() > 2 && !node.input(2).empty();  // training_mode, whose value the node does not tell
}

}  // namespace

Expected<std::vector<Tensor>> run_node(const onnx::NodeProto& node, std::span<const Tensor> inputs, const Opsets& opsets,
                                       const ExecutorOptions& options) {
  thread_local std::map<SchemaBodies, FunctionCache> caches;
  FunctionCache& functions = caches.try_emplace(options.schema_bodies, options.schema_bodies).first->second;
  static ThreadPool one_thread(1);
  const ResolvedOp& op = resolve(node, opsets, options.schema_bodies);
  if (op.implementation == Implementation::kNone || op.implementation == Implementation::kControlFlow || has_body(node)) {
    return unsupported_op(node, opsets);
  }
  Run run{options, inline_tensors(), functions, one_thread};
  if (!options.compute_f64) return run_op(node, op, inputs, opsets, run);
  std::vector<Tensor> wide(inputs.begin(), inputs.end());
  for (Tensor& input : wide) {
    ATTN_OPT_TRY(input, widened(std::move(input), options));
  }
  return run_op(node, op, wide, opsets, run);
}

bool can_run(const onnx::NodeProto& node, const Opsets& opsets) { return runs(node, opsets, 0); }

bool is_random(const onnx::NodeProto& node) {
  std::vector<const onnx::NodeProto*> pending{&node};
  while (!pending.empty()) {
    const onnx::NodeProto& next = *pending.back();
    pending.pop_back();
    if (draws(next)) return true;
    for (const auto& attribute : next.attribute()) {
      for (const auto& inner : attribute.g().node()) pending.push_back(&inner);
    }
  }
  return false;
}

}  // namespace attn_opt
