// Models and nodes in ONNX's textual syntax, for tests.
#pragma once

#include <gmock/gmock.h>
#include <onnx/defs/parser.h>

#include <string>

#include "attn_opt/executor.h"
#include "tests/exec/node_case.h"

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

/// NODE run on INPUTS.
inline Expected<std::vector<Tensor>> run_text(const std::string& node, const std::vector<Tensor>& inputs, const Opsets& opsets,
                                              const ExecutorOptions& options = {}) {
  return run_node(parse_node(node), inputs, opsets, options);
}

/// NODE of opset OPSET run on INPUTS.
inline Expected<std::vector<Tensor>> run_text(const std::string& node, const std::vector<Tensor>& inputs, int opset = 24,
                                              const ExecutorOptions& options = {}) {
  return run_text(node, inputs, Opsets{{"", opset}}, options);
}

inline Expected<std::vector<Tensor>> run_model(const std::string& text, const Feeds& feeds,
                                               const ExecutorOptions& options = {}) {
  const onnx::ModelProto model = parse_model(text);
  ATTN_OPT_TRY(const auto executor, Executor::create(model, inline_tensors(), options));
  return executor.run(feeds);
}

inline void expect_error(const Expected<std::vector<Tensor>>& result, ErrorCode code, const std::string& what) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, code) << result.error().message();
  EXPECT_THAT(result.error().message(), ::testing::HasSubstr(what));
}

template <class T>
std::vector<T> values(const Tensor& tensor) {
  const auto data = tensor.data<T>();
  return {data.begin(), data.end()};
}

/// Output I of RESULT is of T, of shape DIMS and holds EXPECTED, floats to about six digits.
template <class T>
void expect_output(const Expected<std::vector<Tensor>>& result, size_t i, const Dims& dims, const std::vector<T>& expected) {
  ASSERT_TRUE(result) << result.error().message();
  ASSERT_LT(i, result->size());
  const Tensor& output = (*result)[i];
  ASSERT_EQ(output.type(), data_type_of<T>());
  ASSERT_EQ(output.dims(), dims);
  EXPECT_LE(excess(output, Tensor::of<T>(dims, expected), 2e-6, 2e-6), 1) << ::testing::PrintToString(values<T>(output));
}

}  // namespace attn_opt::testing
