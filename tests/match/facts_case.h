// A model in ONNX's textual syntax and the facts of its values.
#pragma once

#include <gtest/gtest.h>
#include <onnx/defs/parser.h>

#include <memory>
#include <string>

#include "attn_opt/facts.h"

namespace attn_opt {

class FactsCase {
 public:
  /// GRAPH: "(inputs) => (outputs) <initializers> { nodes }", followed by model-local functions if there are
  /// any.
  explicit FactsCase(const std::string& graph, int opset = 18) {
    const std::string text = "<ir_version: 10, opset_import: [\"\": " + std::to_string(opset) +
                             ", \"local\": 1, \"com.microsoft\": 1, \"ai.onnx.ml\": 4, \"other\": 1]> g " + graph;
    onnx::OnnxParser parser(text.c_str());
    const auto status = parser.Parse(proto);
    EXPECT_TRUE(status.IsOK()) << status.ErrorMessage();
    start();
  }
  explicit FactsCase(onnx::ModelProto model) : proto(std::move(model)) { start(); }

  const Value& value(const std::string& name) const {
    const Value* found = view ? view->main().find(name) : nullptr;
    if (!found) throw std::invalid_argument("the graph has no " + name);
    return *found;
  }

  /// "(b, 8)"; "unknown" where the rank is not known.
  std::string shape(const std::string& name) {
    const MaybeShape known = facts ? facts->shape(value(name)) : nullptr;
    return known ? to_string(*known) : "unknown";
  }

  /// "(s, 8)" whatever the tensor's shape; "unknown" where nothing is known.
  std::string integers(const std::string& name) {
    const IntegerData* known = facts ? facts->integers(value(name)) : nullptr;
    return known ? to_string(known->values) : "unknown";
  }

  /// "a = b; c = d".
  std::string assumptions() const {
    std::string text;
    if (!facts) return text;
    for (const SizeAssumption& assumption : facts->assumptions()) {
      text += (text.empty() ? "" : "; ") + assumption.one.str() + " = " + assumption.other.str();
    }
    return text;
  }

  onnx::ModelProto proto;
  std::unique_ptr<ModelGraph> view;
  std::unique_ptr<Facts> facts;

 private:
  void start() {
    auto created = ModelGraph::create(proto);
    ASSERT_TRUE(created) << created.error().message();
    view = *std::move(created);
    facts = std::make_unique<Facts>(*view, inline_tensors());
  }
};

}  // namespace attn_opt
