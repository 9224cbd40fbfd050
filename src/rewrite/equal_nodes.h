// Equal nodes between the products of attention, as an exporter writes them that copies a node for each of its readers: one
// does for all of them, so that scores are read as the same scores wherever they stand.
//
//   e1 = Exp(x)   e2 = Exp(x)   Div(e1, ReduceSum(e2))      =>      Div(e1, ReduceSum(e1))
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "attn_opt/graph.h"

namespace attn_opt {

class EqualNodes {
 public:
  explicit EqualNodes(ModelGraph& view) : view_(view) {}

  /// Has what reads copies read the first of them, and removes copies: nodes of the main graph of the same operator, attributes
  /// and inputs that stand beside one of ANCHORS, on a way from one product of computed values to another, or are copies of
  /// such. False if there are none. Linear in the nodes.
  bool merge(const std::vector<const Node*>& anchors);
  /// By the names of what copies made, those of what is read instead.
  const std::unordered_map<std::string, std::string>& firsts() const { return firsts_; }
  /// What merge() removed.
  const std::vector<Node*>& copies() const { return copies_; }
  /// Has the model's nodes read what they read before merge(), where the view was not compacted since.
  void undo() const;

 private:
  struct Read {
    onnx::NodeProto* reader = nullptr;
    int input = 0;
    std::string name;
  };

  void move_readers(Value& from, Value& to);

  ModelGraph& view_;
  std::vector<Node*> copies_;
  std::unordered_map<std::string, std::string> firsts_;
  std::vector<Read> moved_;
};

}  // namespace attn_opt
