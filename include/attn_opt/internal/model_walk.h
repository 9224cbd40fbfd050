// Visits everything of a kind in a model, however deep it is nested: the main graph, the graphs in attributes of nodes,
// model-local functions and training information. Iterative, linear, outer graphs before inner ones.
//
//   for_each_node(model.proto, [&](const onnx::NodeProto& node) { ++count[node.op_type()]; });
//
// A visitor may change what it is given, but must not add to or remove from what is being walked.
#pragma once

#include <onnx/onnx_pb.h>

#include <functional>

namespace attn_opt {

/// Every GraphProto; a function is not one.
void for_each_graph(const onnx::ModelProto& model, const std::function<void(const onnx::GraphProto&)>& visit);
/// The same, to change them.
void for_each_graph(onnx::ModelProto& model, const std::function<void(onnx::GraphProto&)>& visit);

/// Every NodeProto, also those of functions.
void for_each_node(const onnx::ModelProto& model, const std::function<void(const onnx::NodeProto&)>& visit);
/// The same, to change them.
void for_each_node(onnx::ModelProto& model, const std::function<void(onnx::NodeProto&)>& visit);
/// Those of one function and the graphs in it.
void for_each_node(const onnx::FunctionProto& function, const std::function<void(const onnx::NodeProto&)>& visit);
/// The same, to change them.
void for_each_node(onnx::FunctionProto& function, const std::function<void(onnx::NodeProto&)>& visit);

/// Every TensorProto: initializers, attributes (also defaults of a function's attributes), values and indices of sparse
/// tensors.
void for_each_tensor(const onnx::ModelProto& model, const std::function<void(const onnx::TensorProto&)>& visit);
/// The same, to change them.
void for_each_tensor(onnx::ModelProto& model, const std::function<void(onnx::TensorProto&)>& visit);

}  // namespace attn_opt
