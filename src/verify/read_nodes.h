// Nodes that lay in functions, as the model that was read has them: what verification runs is not what inlining made of them.
//
// Such a node stands in a function of its own, called with what the model's calls are called with: the executor gives it its
// attributes, defaults included. What it reads is followed through the calls of the model that was read.
#pragma once

#include "src/rewrite/function_inliner.h"
#include "src/verify/cone.h"

namespace attn_opt {

class ReadNodes {
 public:
  /// CALLS may be null: then no node lay in a function.
  explicit ReadNodes(const InlinedCalls* calls) : calls_(calls) {}

  const InlinedCalls::Origin* origin(const Node& node) const;
  /// True if NODE's attributes are told by a call.
  bool takes_attributes(const Node& node) const;
  /// Which of NODES reads something else than in the model that was read; empty if none does.
  std::string wiring_fault(const std::vector<Node*>& nodes) const;
  /// NODE and the calls that it is in, as text; empty if it lay in no function.
  std::string text(const Node& node) const;
  /// Puts those of NODES, the nodes of MODEL's graph, that lay in functions into MODEL as they were read.
  void restore(const std::vector<Node*>& nodes, onnx::ModelProto& model) const;

 private:
  /// Enters the functions that NODE calls, in its graphs and in functions too.
  void add_called(const onnx::NodeProto& node, onnx::ModelProto& model) const;

  const InlinedCalls* calls_;
};

}  // namespace attn_opt
