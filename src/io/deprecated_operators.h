// Operators that ONNX deprecated at once where runtimes run them.
#pragma once

#include <onnx/onnx_pb.h>

namespace attn_opt {

/// MODEL for ONNX's checker: GroupNormalization of opset 18, which 21 replaced by another of the same form,
/// in a domain that is not checked.
onnx::ModelProto without_deprecated_operators(const onnx::ModelProto& model);

}  // namespace attn_opt
