// Inputs of nodes that read other values for as long as attention is looked for.
#pragma once

#include <string>
#include <vector>

#include "attn_opt/graph.h"

namespace attn_opt {

class Redirections {
 public:
  /// Has input number INPUT of NODE, which reads some value, read VALUE.
  void set_input(ModelGraph& view, Node& node, int input, Value& value) {
    before_.push_back({node.proto, input, node.inputs[static_cast<size_t>(input)]->name});
    view.set_input(node, input, value);
  }
  /// Has the model of the view, which nothing was written into since, read what it read.
  void restore() const {
    for (auto one = before_.rbegin(); one != before_.rend(); ++one) one->node->set_input(one->input, one->name);
  }

 private:
  /// Input number INPUT of NODE, which read what is called NAME.
  struct Before {
    onnx::NodeProto* node;
    int input;
    std::string name;
  };

  std::vector<Before> before_;
};

}  // namespace attn_opt
