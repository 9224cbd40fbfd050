// The models of docs/builder.md: they stand here as they stand there, and compute what the text says.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "attn_opt/executor.h"
#include "attn_opt/graph_builder.h"

namespace attn_opt {
namespace {

attn_opt::Expected<attn_opt::Model> classifier() {
  attn_opt::GraphBuilder build({.opset = 21, .name = "classifier"});
  attn_opt::Value* x = build.input("x", onnx::TensorProto::FLOAT, {"batch", 4});
  attn_opt::Value* weight = build.initializer("weight", attn_opt::Tensor::of<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}));
  attn_opt::Value* scores = build.node("MatMul", {x, weight});
  build.output("y", build.node("Softmax", {scores}, {{"axis", -1}}));
  return build.model();
}

attn_opt::Expected<attn_opt::Model> chosen() {
  attn_opt::GraphBuilder build;
  attn_opt::Value* x = build.input("x", onnx::TensorProto::FLOAT, {"n"});
  attn_opt::GraphBuilder scaled = build.function("acme", "Scaled");
  const auto factor = attn_opt::Attribute::reference("value_float", "factor", onnx::AttributeProto::FLOAT);
  scaled.output("y", scaled.node("Mul", {scaled.input("x"), scaled.node("Constant", {}, {factor})}));
  attn_opt::GraphBuilder yes = build.body("yes"), no = build.body("no");
  yes.output("y", yes.node("acme::Scaled", {x}, {{"factor", 2.0}}));
  no.output("y", no.node("Relu", {x}));
  attn_opt::Value* flag = build.input("flag", onnx::TensorProto::BOOL, {});
  build.output("y", build.node("If", {flag}, {{"then_branch", yes}, {"else_branch", no}}));
  return build.model();
}

std::string file_text(const std::filesystem::path& path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// What stands in ```cpp fences of docs/PAGE, in order.
std::vector<std::string> cpp_blocks(const std::string& page) {
  const std::string manual = file_text(std::filesystem::path(ATTN_OPT_TESTDATA) / "../docs" / page);
  const std::string fence = "```cpp\n";
  std::vector<std::string> blocks;
  for (size_t at = manual.find(fence); at != std::string::npos; at = manual.find(fence, at)) {
    at += fence.size();
    blocks.push_back(manual.substr(at, manual.find("```", at) - at));
  }
  return blocks;
}

std::vector<float> first_output(const Expected<Model>& model, const Feeds& feeds) {
  EXPECT_TRUE(model.has_value()) << model.error().message();
  if (!model) return {};
  const auto executor = Executor::create(model->proto, *model->tensors, {});
  const auto outputs = executor->run(feeds);
  EXPECT_TRUE(outputs.has_value()) << outputs.error().message();
  const auto numbers = outputs->at(0).data<float>();
  return {numbers.begin(), numbers.end()};
}

TEST(BuilderManual, ItsModelsAreThese) {
  const auto shown = cpp_blocks("builder.md");
  ASSERT_EQ(shown.size(), 2u);
  for (const std::string& block : shown) EXPECT_THAT(file_text(__FILE__), ::testing::HasSubstr(block));
}

TEST(BuilderManual, TheClassifier) {
  const Tensor x = Tensor::of<float>({1, 4}, {0.1F, -0.2F, 0.3F, 0.4F});
  // Its scores are 4 and 4.6.
  EXPECT_THAT(first_output(classifier(), {{"x", x}}),
              ::testing::Pointwise(::testing::FloatNear(1e-6F), {0.3543437F, 0.6456563F}));
}

TEST(BuilderManual, TheChosenBranch) {
  const Tensor x = Tensor::of<float>({2}, {-1, 3});
  EXPECT_THAT(first_output(chosen(), {{"x", x}, {"flag", Tensor::scalar(true)}}), ::testing::ElementsAre(-2, 6));
  EXPECT_THAT(first_output(chosen(), {{"x", x}, {"flag", Tensor::scalar(false)}}), ::testing::ElementsAre(0, 3));
}

}  // namespace
}  // namespace attn_opt
