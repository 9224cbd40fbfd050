// Puts drafts into a model.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "attn_opt/graph.h"
#include "src/opset/draft.h"

namespace attn_opt {

class DraftWriter {
 public:
  explicit DraftWriter(ModelGraph& view) : view_(view) {}

  /// DRAFT takes the place of NODE: all outputs keep their names, and NODE's own name, documentation and
  /// metadata go to the one that stands for it. Drafts of a graph are to be written in the order of its
  /// nodes.
  void write(Node& node, const Draft& draft);

 private:
  using Values = std::unordered_map<std::string, Value*>;
  Value* constant(Node& node, const onnx::NodeProto& draft);
  Node* add(Node& node, const onnx::NodeProto& draft, Values& values);

  ModelGraph& view_;
  std::map<std::pair<const Graph*, std::string>, Value*> constants_;  ///< by contents
};

}  // namespace attn_opt
