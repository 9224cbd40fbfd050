// ONNX's schemas, each made when it is first asked for. ONNX registers all versions of all operators at the first question,
// which is most of what a run on a small model takes.
#pragma once

#include <onnx/defs/schema.h>

#include <string>

namespace attn_opt {

/// Those of ONNX, for whoever takes a registry. May be asked by several threads at once.
const onnx::ISchemaRegistry& onnx_schemas();

/// The schema of OP in DOMAIN ("" is ONNX's) at OPSET, the newest that is not newer; null if there is none. Lives as long as
/// the program.
inline const onnx::OpSchema* onnx_schema(const std::string& op, int opset, const std::string& domain) {
  return onnx_schemas().GetSchema(op, opset, domain);
}

}  // namespace attn_opt
