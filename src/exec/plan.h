// A graph or function body indexed once for running: values are numbered slots, and each step knows which it
// reads, writes and frees.
#pragma once

#include <deque>
#include <memory>

#include "src/exec/resolve.h"

namespace attn_opt {

struct Plan;

struct Step {
  const onnx::NodeProto* node = nullptr;
  ResolvedOp op;
  std::vector<int> inputs;                    ///< slots; -1: omitted
  std::vector<int> outputs;                   ///< slots; -1: omitted
  std::vector<int> releases;                  ///< slots that no later step reads
  std::vector<std::unique_ptr<Plan>> bodies;  ///< of the graph attributes, in their order
};

struct Plan {
  /// The value OUTER of the enclosing plan is INNER in this one.
  struct Capture {
    int outer = 0, inner = 0;
  };

  std::vector<Step> steps;
  std::vector<int> inputs;
  std::vector<std::string> input_names;
  std::vector<int> outputs;  ///< -1: an optional output that a function's body leaves out
  std::vector<std::string> output_names;
  std::vector<const onnx::TensorProto*> initializers;                           ///< by slot; null for other values
  std::unordered_map<int, const onnx::SparseTensorProto*> sparse_initializers;  ///< by slot
  std::vector<Capture> captures;
  Opsets opsets;

  size_t slots() const { return initializers.size(); }
};

/// A model's own functions by "domain::name:overload".
using LocalFunctions = std::unordered_map<std::string, const onnx::FunctionProto*>;
std::string function_key(const std::string& domain, const std::string& name, const std::string& overload);

/// GRAPH must outlive the plan. Errors: kInvalidInput (a value that nothing produces), kUnsupported (an
/// operator), kLimit (bodies nested too deep).
Expected<std::unique_ptr<Plan>> plan_graph(const onnx::GraphProto& graph, const Opsets& opsets, const LocalFunctions& functions,
                                           SchemaBodies bodies);
/// Likewise of a function's body, with the opsets that it imports and, of other domains, OPSETS.
Expected<std::unique_ptr<Plan>> plan_function(const onnx::FunctionProto& function, const Opsets& opsets,
                                              const LocalFunctions& functions, SchemaBodies bodies);

}  // namespace attn_opt
