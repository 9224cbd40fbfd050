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

  /// DRAFT takes the place of NODE: all outputs keep their names, and whatever NODE has besides operator,
  /// attributes, inputs and outputs goes to the one that stands for it. Drafts of a graph are to be written
  /// in the order of its nodes, and to live as long as the writer.
  void write(Node& node, const Draft& draft);

 private:
  using Values = std::unordered_map<std::string, Value*>;
  Value* constant(Node& node, const onnx::NodeProto& draft);
  Node* add(Node& node, const onnx::NodeProto& draft, Values& values);
  static bool fits_in_place(const Node& node, const Draft& draft);
  void change_in_place(Node& node, const onnx::NodeProto& draft, Values& values);
  void replace(Node& node, const onnx::NodeProto& draft, Values& values);

  ModelGraph& view_;
  std::map<std::pair<const Graph*, std::string>, Value*> constants_;  ///< by contents
  std::map<std::pair<const Graph*, const onnx::NodeProto*>, Value*> constants_of_drafts_;
};

}  // namespace attn_opt
