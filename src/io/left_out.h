// What exporters leave out and ONNX's checker wants, in models that runtimes take all the same (tf2onnx writes both):
//
//   the shape of an input or output of the main graph, which is then not even said to be that of a scalar
//   the import of com.microsoft, which ONNX Runtime always has
#pragma once

#include <onnx/onnx_pb.h>

namespace attn_opt {

bool leaves_out(const onnx::ModelProto& model);

/// Imports com.microsoft.
void complete_imports(onnx::ModelProto& model);
/// complete_imports(), and some shape where there is none, for who only asks whether there is one.
void complete(onnx::ModelProto& model);

}  // namespace attn_opt
