#include "src/trial/draw_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/defs/parser.h>

namespace attn_opt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

onnx::GraphProto parse(const char* text) {
  onnx::GraphProto graph;
  EXPECT_TRUE(onnx::OnnxParser::Parse(graph, text).IsOK());
  return graph;
}

const char* const kSymbolic = R"(g (float[batch, seq] x, float[batch, total] y, int64[2, 3] ids) => (float z)
  { z = Identity(x) })";

TEST(DrawInputs, GivesEachSymbolASizeOfItsOwn) {
  const auto drawn = draw_inputs(parse(kSymbolic), {});
  ASSERT_TRUE(drawn.has_value()) << drawn.error().message();
  EXPECT_THAT(drawn->feeds.at("x").dims(), ElementsAre(2, 3));
  EXPECT_THAT(drawn->feeds.at("y").dims(), ElementsAre(2, 5));
  EXPECT_THAT(drawn->feeds.at("ids").dims(), ElementsAre(2, 3));
}

TEST(DrawInputs, TakesSizesAndFills) {
  DrawOptions options;
  options.sizes = {{"seq", 4}};
  options.fills = {{"ids", *parse_fill("iota")}};
  const auto drawn = draw_inputs(parse(kSymbolic), options);
  ASSERT_TRUE(drawn.has_value()) << drawn.error().message();
  EXPECT_THAT(drawn->feeds.at("x").dims(), ElementsAre(2, 4));
  EXPECT_THAT(drawn->feeds.at("ids").data<int64_t>(), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(DrawInputs, ExpressionsFollowTheirSymbols) {
  auto graph = parse("g (float[past, seq] x, float[a] y) => (float z) { z = Identity(x) }");
  graph.mutable_input(1)->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_param("past + 2*seq");
  const auto drawn = draw_inputs(graph, {});
  ASSERT_TRUE(drawn.has_value()) << drawn.error().message();
  EXPECT_THAT(drawn->feeds.at("y").dims(), ElementsAre(2 + 2 * 3));
}

TEST(DrawInputs, NamesOfOtherCharactersAreGivenAsTheyAre) {
  for (const char* name : {"seq-len", "seq*1", "(seq)"}) {
    auto graph = parse("g (float[seq] x, float[a] y) => (float z) { z = Identity(x) }");
    graph.mutable_input(1)->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_param(name);
    DrawOptions options;
    options.sizes = {{"seq", 4}, {name, 6}};
    const auto drawn = draw_inputs(graph, options);
    ASSERT_TRUE(drawn.has_value()) << drawn.error().message();
    EXPECT_THAT(drawn->feeds.at("x").dims(), ElementsAre(4)) << name;
    EXPECT_THAT(drawn->feeds.at("y").dims(), ElementsAre(6)) << name;
  }
}

TEST(DrawInputs, UnnamedAxesAreCalledAfterTheirInput) {
  const auto graph = parse("g (float[?, 2] x) => (float z) { z = Identity(x) }");
  DrawOptions options;
  options.sizes = {{"x[0]", 7}};
  const auto drawn = draw_inputs(graph, options);
  ASSERT_TRUE(drawn.has_value()) << drawn.error().message();
  EXPECT_THAT(drawn->feeds.at("x").dims(), ElementsAre(7, 2));
}

TEST(DrawInputs, InitializedInputsAreNotFed) {
  const auto graph = parse("g (float[2] x, float[2] w = {1, 2}) => (float[2] z) { z = Add(x, w) }");
  EXPECT_EQ(draw_inputs(graph, {})->feeds.size(), 1u);
}

TEST(DrawInputs, TheSameSeedGivesTheSame) {
  const auto graph = parse(kSymbolic);
  DrawOptions other;
  other.seed = 1;
  const auto first = draw_inputs(graph, {}), again = draw_inputs(graph, {}), different = draw_inputs(graph, other);
  EXPECT_TRUE(std::ranges::equal(first->feeds.at("x").bytes(), again->feeds.at("x").bytes()));
  EXPECT_FALSE(std::ranges::equal(first->feeds.at("x").bytes(), different->feeds.at("x").bytes()));
  EXPECT_NE(first->feeds.at("x").data<float>()[0], first->feeds.at("y").data<float>()[0]);
}

TEST(DrawInputs, SaysWhatThereIsToSet) {
  DrawOptions options;
  options.sizes = {{"sequence", 4}};
  const auto wrong_size = draw_inputs(parse(kSymbolic), options);
  ASSERT_FALSE(wrong_size.has_value());
  EXPECT_EQ(wrong_size.error().code, ErrorCode::kUsage);
  EXPECT_THAT(wrong_size.error().remedy, HasSubstr("batch, seq, total"));
  options.sizes.clear();
  options.fills = {{"z", default_fill(onnx::TensorProto::FLOAT)}};
  const auto wrong_input = draw_inputs(parse(kSymbolic), options);
  ASSERT_FALSE(wrong_input.has_value());
  EXPECT_THAT(wrong_input.error().remedy, HasSubstr("x, y, ids"));
}

TEST(DrawInputs, AFailedRunTellsTheSizes) {
  onnx::ModelProto model;
  ASSERT_TRUE(onnx::OnnxParser::Parse(model, R"(<ir_version: 8, opset_import: ["" : 18]>
    g (float[n] x, float[m] y) => (float[n] z) { z = Add(x, y) })")
                  .IsOK());
  const auto executor = Executor::create(model, inline_tensors(), {});
  ASSERT_TRUE(executor.has_value());
  DrawOptions options;
  const auto failed = run_on(*executor, *draw_inputs(model.graph(), options));
  ASSERT_FALSE(failed.has_value());
  EXPECT_THAT(failed.error().remedy, HasSubstr("m=3 n=2"));
  options.sizes = {{"m", 2}};
  EXPECT_TRUE(run_on(*executor, *draw_inputs(model.graph(), options)).has_value());
}

TEST(DrawInputs, RefusesWhatItCannotDraw) {
  const auto code_of = [](const char* text, const DrawOptions& options = {}) {
    const auto drawn = draw_inputs(parse(text), options);
    return drawn ? std::optional<ErrorCode>() : drawn.error().code;
  };
  EXPECT_EQ(code_of("g (seq(float[2]) x) => (float z) { z = Identity(x) }"), ErrorCode::kUnsupported);
  EXPECT_EQ(code_of("g (float x) => (float z) { z = Identity(x) }"), std::nullopt) << "a scalar";
  EXPECT_EQ(code_of("g (float[] x) => (float z) { z = Identity(x) }"), ErrorCode::kUnsupported) << "no rank";
  EXPECT_EQ(code_of("g (string[2] x) => (float z) { z = Identity(x) }"), ErrorCode::kUnsupported);
  EXPECT_EQ(code_of("g (float[100000, 100000] x) => (float z) { z = Identity(x) }"), ErrorCode::kLimit);
  EXPECT_EQ(code_of("g (float[9223372036854775807, 4] x) => (float z) { z = Identity(x) }"), ErrorCode::kLimit);
}

}  // namespace
}  // namespace attn_opt
