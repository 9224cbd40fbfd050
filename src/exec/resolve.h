// Which implementation a node has: a kernel, a control-flow operator, a model's own function, or its schema's
// body.
#pragma once

#include <onnx/defs/schema.h>

#include "src/exec/kernel.h"

namespace attn_opt {

enum class Implementation { kNone, kKernel, kControlFlow, kLocalFunction, kSchemaFunction };

struct ResolvedOp {
  Implementation implementation = Implementation::kNone;
  const onnx::OpSchema* schema = nullptr;         ///< null for a local function and in domains that ONNX does not know
  int version = 0;                                ///< since_version of the schema; without one the domain's version
  const onnx::FunctionProto* function = nullptr;  ///< of a local function
  Kernel kernel = nullptr;
  bool variadic = false;    ///< the last input may be repeated, and none of them omitted
  int required_inputs = 0;  ///< leading inputs that may not be omitted
};

/// "" for both names of the ONNX domain.
const std::string& canonical_domain(const std::string& domain);
/// The version of DOMAIN in OPSETS; 0 if it is not there.
int opset_of(const Opsets& opsets, const std::string& domain);

/// What ONNX and the kernels know of NODE; lookups are cached per thread.
const ResolvedOp& resolve(const onnx::NodeProto& node, const Opsets& opsets,
                          SchemaBodies bodies = SchemaBodies::kWithoutKernel);

/// kUnsupported: "unsupported: DOMAIN::OP (opset N)".
tl::unexpected<Error> unsupported_op(const onnx::NodeProto& node, const Opsets& opsets);

}  // namespace attn_opt
