// Models in ONNX's textual syntax, and what tests read off a model.
#pragma once

#include <gtest/gtest.h>
#include <onnx/defs/parser.h>

#include <memory>
#include <string>

#include "attn_opt/graph.h"

namespace attn_opt {

inline onnx::ModelProto model_of_text(const std::string& text) {
  onnx::ModelProto model;
  const auto status = onnx::OnnxParser::Parse(model, text.c_str());
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage() << text;
  return model;
}

/// GRAPH is "(inputs) => (outputs) <initializers> { nodes }".
inline onnx::ModelProto model_of_graph(const std::string& graph, int opset = 18, int ir_version = 10) {
  return model_of_text("<ir_version: " + std::to_string(ir_version) + ", opset_import: [\"\": " + std::to_string(opset) +
                       "]> g " + graph);
}

/// "Abs:a Exp:y": operator and first output of each node, in their order.
inline std::string spelled(const onnx::GraphProto& graph) {
  std::string text;
  for (const auto& node : graph.node())
    text += (text.empty() ? "" : " ") + node.op_type() + ":" + (node.output_size() ? node.output(0) : "");
  return text;
}

/// A model and its view.
struct Viewed {
  explicit Viewed(onnx::ModelProto model) : proto(std::move(model)) {
    auto created = ModelGraph::create(proto);
    EXPECT_TRUE(created.has_value()) << created.error().message();
    if (created) view = *std::move(created);
  }
  explicit Viewed(const std::string& graph) : Viewed(model_of_graph(graph)) {}

  Value& value(const std::string& name) { return *view->main().find(name); }
  /// The node that makes NAME.
  Node& maker(const std::string& name) { return *value(name).producer; }
  std::string nodes() const { return spelled(proto.graph()); }

  onnx::ModelProto proto;
  std::unique_ptr<ModelGraph> view;
};

}  // namespace attn_opt
