// Operators that ONNX Runtime has in the domain of ONNX, where ONNX has none of that name at the opset: LayerNormalization
// before 17, SimplifiedLayerNormalization, ThresholdedRelu before 10, MeanVarianceNormalization before 9, copies between
// devices, plugins of TensorRT. ONNX Runtime writes the first two into models that it saves optimized. Those that ONNX
// dropped as experimental (Affine, Scale, ...) are not among them: ONNX's checker takes them.
#pragma once

#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>

#include <optional>
#include <string>

namespace attn_opt {

/// The schema of OP in DOMAIN ("" is ONNX's) at OPSET, ONNX's or else ONNX Runtime's; null if neither has one. Those of
/// ONNX Runtime have no shape inference and no body.
const onnx::OpSchema* find_schema(const std::string& op, int opset, const std::string& domain);

/// True if a runtime may have an operator NAME of DOMAIN. ONNX leaves it to runtimes which goes first, their operator or a
/// function that the model has of that name: ONNX Runtime and OpenVINO take their own, and what the function says is not what
/// runs. Of com.microsoft every name may be one: which there are differs from version to version.
bool may_be_an_operator(const std::string& domain, const std::string& name);

/// MODEL for ONNX's checker if it has nodes that only runtimes have: such nodes, and GroupNormalization of opset 18, which
/// ONNX deprecated at once and runtimes run, in a domain that is not checked. Throws what the checker would say of them.
std::optional<onnx::ModelProto> without_runtime_operators(const onnx::ModelProto& model);

}  // namespace attn_opt
