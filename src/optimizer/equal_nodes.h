// Equal nodes between the products of attention, as an exporter writes them that copies a node for each of its readers: one
// does for all of them, so that scores are read as the same scores wherever they stand.
//
//   e1 = Exp(x)   e2 = Exp(x)   Div(e1, ReduceSum(e2))      =>      Div(e1, ReduceSum(e1))
#pragma once

#include <string>
#include <vector>

#include "attn_opt/graph.h"
#include "attn_opt/optimizer.h"

namespace attn_opt {

class EqualNodes {
 public:
  /// Finds those of the main graph of VIEW: nodes of the same operator, attributes and inputs, products of two computed values
  /// or behind one and in front of the next. Linear in the nodes.
  explicit EqualNodes(ModelGraph& view);

  bool empty() const { return equal_.empty(); }
  /// Has what reads later ones read the first, and removes them.
  void merge();
  /// Has the model's nodes read what they read before merge(), where the view was not compacted since.
  void undo() const;

 private:
  struct Equal {
    Node* node = nullptr;
    const Node* first = nullptr;
  };
  struct Read {
    onnx::NodeProto* reader = nullptr;
    int input = 0;
    std::string name;
  };

  void move_readers(Value& from, Value& to);

  ModelGraph& view_;
  std::vector<Equal> equal_;
  std::vector<Read> moved_;
};

/// Those of VIEW, merged if patterns miss some attention there. Error as of chosen_patterns().
Expected<EqualNodes> merge_equal_nodes(ModelGraph& view, const TensorStore& tensors, const OptimizeOptions& options);

}  // namespace attn_opt
