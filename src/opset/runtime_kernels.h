// What a runtime cannot run of the opset that a model is raised to.
#pragma once

#include <string>

#include "attn_opt/tensor.h"

namespace attn_opt {

/// True if ONNX Runtime runs the ai.onnx operator OP of opset FROM on TYPE, but not of opset TO: a model that is
/// raised would no longer load. As of ONNX Runtime 1.32 (its table of CPU kernels, and what of ONNX's bodies of functions
/// loads).
bool loses_its_kernel(const std::string& op, DataType type, int from, int to);

}  // namespace attn_opt
