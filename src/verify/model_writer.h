// Writes a part of a model as a model of its own, from the view: edits that are committed but not yet in the protos show.
#pragma once

#include <unordered_map>

#include "src/verify/cone.h"

namespace attn_opt {

/// A model's local functions by what nodes call them.
class LocalFunctionGraphs {
 public:
  explicit LocalFunctionGraphs(const ModelGraph& view);
  /// Null if NODE calls none.
  const Graph* called_by(const Node& node) const;

 private:
  std::unordered_map<std::string, const Graph*> graphs_;
};

/// NODE with the names of its values, and its bodies, as the view has them.
onnx::NodeProto write_node(const Node& node);

/// A model of CONE's nodes in the opsets of GRAPH, with the functions they call; the leaves are its inputs.
onnx::ModelProto write_model(const Cone& cone, const std::vector<Value*>& outputs, const Graph& graph,
                             const LocalFunctionGraphs& functions);

/// Writes those of NODES, the nodes of MODEL's graph, that earlier edits made for another opset than MODEL's as calls of
/// functions that import theirs.
void stand_at_own_opsets(const std::vector<Node*>& nodes, onnx::ModelProto& model);

}  // namespace attn_opt
