// Bodies of functions - a model's own and those of ONNX's schemas - ready to run, kept per attributes and
// input types.
#pragma once

#include <mutex>

#include "src/exec/plan.h"

namespace attn_opt {

struct FunctionBody {
  onnx::FunctionProto proto;  ///< with attributes bound
  std::unique_ptr<Plan> plan;
};

class FunctionCache {
 public:
  explicit FunctionCache(SchemaBodies bodies, LocalFunctions functions = {})
      : functions_(std::move(functions)), schema_bodies_(bodies) {}
  FunctionCache(const FunctionCache&) = delete;
  FunctionCache& operator=(const FunctionCache&) = delete;

  /// The body that NODE calls with INPUTS.
  Expected<std::shared_ptr<const FunctionBody>> body(const onnx::NodeProto& node, const ResolvedOp& op,
                                                     std::span<const Tensor> inputs, const Opsets& opsets);
  const LocalFunctions& functions() const { return functions_; }

 private:
  LocalFunctions functions_;
  SchemaBodies schema_bodies_;  ///< in the bodies
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const FunctionBody>> bodies_;
};

/// FUNCTION, a model's own, as CALL calls it: values in place of references to its attributes, those of CALL or else FUNCTION's
/// defaults. A reference to an attribute without a value is dropped.
onnx::FunctionProto bound_function(const onnx::FunctionProto& function, const onnx::NodeProto& call);

/// The body of the schema function that NODE is, for inputs of TYPES (unset: omitted or unknown), attributes
/// bound. Errors: kUnsupported if the schema has no body for them.
Expected<onnx::FunctionProto> schema_function(const onnx::NodeProto& node, const onnx::OpSchema& schema, int opset,
                                              const std::vector<onnx::TypeProto>& types);

}  // namespace attn_opt
