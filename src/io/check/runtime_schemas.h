// The schemas of src/io/check/runtime_operators.h.
#pragma once

#include <onnx/defs/schema.h>

#include <string>

namespace attn_opt {

/// The schema that ONNX Runtime 1.31 has, since opset 1, for OP in the domain of ONNX up to the opset at which ONNX has OP,
/// if ever; null if there is none.
const onnx::OpSchema* runtime_schema(const std::string& op);

}  // namespace attn_opt
