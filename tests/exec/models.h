// Models and nodes in ONNX's textual syntax, for tests.
#pragma once

#include <gtest/gtest.h>
#include <onnx/defs/parser.h>

#include <string>

#include "attn_opt/executor.h"

namespace attn_opt::testing {

inline onnx::ModelProto parse_model(const std::string& text) {
  onnx::ModelProto model;
  const auto status = onnx::OnnxParser::Parse(model, text.c_str());
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage();
  return model;
}

inline onnx::NodeProto parse_node(const std::string& text) {
  onnx::NodeProto node;
  onnx::OnnxParser parser(text.c_str());
  const auto status = parser.Parse(node);
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage();
  return node;
}

/// NODE of opset OPSET run on INPUTS.
inline Expected<std::vector<Tensor>> run_text(const std::string& node, const std::vector<Tensor>& inputs,
                                              int opset = 24, const ExecutorOptions& options = {}) {
  return run_node(parse_node(node), inputs, {{"", opset}}, options);
}

inline Expected<std::vector<Tensor>> run_model(const std::string& text, const Feeds& feeds,
                                               const ExecutorOptions& options = {}) {
  const onnx::ModelProto model = parse_model(text);
  ATTN_OPT_TRY(const auto executor, Executor::create(model, inline_tensors(), options));
  return executor.run(feeds);
}

template <class T>
std::vector<T> values(const Tensor& tensor) {
  const auto data = tensor.data<T>();
  return {data.begin(), data.end()};
}

}  // namespace attn_opt::testing
