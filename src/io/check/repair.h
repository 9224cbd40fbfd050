// What runtimes read and ONNX's checker refuses, made what they read it as: the checker takes the result, which is what is
// written.
//
//   an output of the main graph without a type     the type that ONNX's shape inference finds
//   initializers of one name, type and shape       the last of them, which ONNX Runtime takes
//   nodes of the domain "ai.onnx"                  those of "", which it is another name of; of what functions import, too
#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

namespace attn_opt {

/// Repairs MODEL. Returns what was done, a line for each, empty if nothing was. What cannot be repaired stays for the checker.
std::vector<std::string> repair(onnx::ModelProto& model);

}  // namespace attn_opt
