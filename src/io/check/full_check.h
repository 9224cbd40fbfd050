// What ONNX says of a model, shapes included.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>

namespace attn_opt {

/// What onnx.checker.check_model with full_check throws of PROTO without operators of ONNX Runtime, in one line; empty if all
/// is well, also where it leaves out what left_out.h says. Shape inference that does not follow the contents of shapes takes
/// some for empty that are not: what it refuses and the one that follows them takes is valid.
std::string full_check(const onnx::ModelProto& proto);

}  // namespace attn_opt
