// The order of nodes in a file: each after those that it reads.
//
// ONNX demands it, runtimes do not, and tools that insert nodes leave others behind: float16 converters and quantizers.
#pragma once

#include <onnx/onnx_pb.h>

namespace attn_opt {

/// Puts the nodes of MODEL's graphs and functions where they belong, those that have no reason to move in the order they had. A
/// graph in which nodes wait for each other stays as it is.
void sort_nodes(onnx::ModelProto& model);

}  // namespace attn_opt
