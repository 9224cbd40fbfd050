// Builds a ModelGraph from a ModelProto in one pass.
#pragma once

#include <string>

#include "attn_opt/graph.h"

namespace attn_opt {

class GraphReader {
 public:
  explicit GraphReader(ModelGraph& model) : model_(model) {}
  Status read_model();

 private:
  Graph* new_graph(Graph* parent, Node* owner);
  Status read_function(onnx::FunctionProto& function);
  Status read_graph(Graph& graph, onnx::GraphProto& proto, int depth);
  Status read_nodes(Graph& graph, google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes, int depth);
  Status read_node(Graph& graph, onnx::NodeProto& proto, int depth);
  Status read_bodies(Node& node, int depth);
  Status connect_outputs(Graph& graph);
  Expected<Value*> define(Graph& graph, const std::string& name);
  void declare_types(Graph& graph, onnx::GraphProto& proto);

  ModelGraph& model_;
};

}  // namespace attn_opt
