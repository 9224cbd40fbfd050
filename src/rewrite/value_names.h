#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <unordered_map>

namespace attn_opt {

/// New names by old ones.
using NewNames = std::unordered_map<std::string, std::string>;

/// Puts NAMES into what NODE, or a body in it, reads and makes.
void put_names(const NewNames& names, onnx::NodeProto& node);
/// The same for all nodes, outputs and value_info of GRAPH.
void put_names(const NewNames& names, onnx::GraphProto& graph);

}  // namespace attn_opt
