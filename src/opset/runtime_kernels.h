// What a runtime cannot run of the opset that a model is raised to.
#pragma once

#include <string>

namespace attn_opt {

/// True if ONNX Runtime runs the ai.onnx operator OP of opset FROM, but not of opset TO: a model that is
/// raised would no longer load. As of ONNX Runtime 1.31 (its table of CPU kernels).
bool loses_its_kernel(const std::string& op, int from, int to);

}  // namespace attn_opt
