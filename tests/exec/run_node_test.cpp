#include <cmath>
#include <limits>

#include "tests/exec/models.h"

namespace attn_opt::testing {
namespace {

using ::testing::ElementsAre;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kNaN = std::nanf("");

Tensor zeros(Dims dims) { return Tensor(onnx::TensorProto::FLOAT, std::move(dims)); }

TEST(RunNode, AddsWithBroadcasting) {
  const auto result = run_text("y = Add(a, b)", {Tensor::of<float>({2, 1}, {1, 2}), Tensor::of<float>({3}, {10, 20, 30})});
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_EQ((*result)[0].dims(), (Dims{2, 3}));
  EXPECT_THAT(values<float>((*result)[0]), ElementsAre(11, 21, 31, 12, 22, 32));
}

TEST(RunNode, ReportsShapesThatDoNotFit) {
  expect_error(run_text("y = Add(a, b)", {zeros({2}), zeros({3})}), ErrorCode::kInvalidInput, "[2] and [3] do not broadcast");
  expect_error(run_text("y = MatMul(a, b)", {zeros({2, 3}), zeros({2, 3})}), ErrorCode::kInvalidInput, "do not multiply");
  expect_error(run_text("y = Concat<axis = 0>(a, b)", {zeros({2, 3}), zeros({2, 4})}), ErrorCode::kInvalidInput, "differ");
  expect_error(run_text("y = Transpose<perm = [0, 0]>(a)", {zeros({2, 3})}), ErrorCode::kInvalidInput, "twice");
  expect_error(run_text("y = Reshape(a, s)", {zeros({2, 3}), Tensor::of<int64_t>({2}, {4, -1})}), ErrorCode::kInvalidInput,
               "cannot become");
}

TEST(RunNode, ReportsMixedTypes) {
  expect_error(run_text("y = Mul(a, b)", {zeros({2}), Tensor::of<double>({2}, {1, 2})}), ErrorCode::kInvalidInput,
               "float32 and float64");
}

TEST(RunNode, ReportsIndicesOutOfRange) {
  const Tensor data = zeros({3, 4});
  for (const int64_t index : {int64_t{3}, int64_t{-4}, std::numeric_limits<int64_t>::min()}) {
    const Tensor one = Tensor::of<int64_t>({1}, {index});
    const Tensor two = Tensor::of<int64_t>({1, 1}, {index});
    expect_error(run_text("y = Gather(d, i)", {data, one}), ErrorCode::kInvalidInput, "out of range");
    expect_error(run_text("y = GatherElements(d, i)", {data, two}), ErrorCode::kInvalidInput, "out of range");
    expect_error(run_text("y = GatherND(d, i)", {data, two}), ErrorCode::kInvalidInput, "out of range");
    expect_error(run_text("y = ScatterElements(d, i, u)", {data, two, zeros({1, 1})}), ErrorCode::kInvalidInput,
                 "out of range");
    expect_error(run_text("y = ScatterND(d, i, u)", {data, two, zeros({1, 4})}), ErrorCode::kInvalidInput, "out of range");
  }
  expect_error(run_text("y = Softmax<axis = 2>(a)", {data}), ErrorCode::kInvalidInput, "axis 2");
}

TEST(RunNode, RefusesHugeShapes) {
  const auto shape = [](std::vector<int64_t> dims) { return Tensor::of<int64_t>({static_cast<int64_t>(dims.size())}, dims); };
  const int64_t huge = int64_t{1} << 40;
  expect_error(run_text("y = ConstantOfShape(s)", {shape({huge})}), ErrorCode::kLimit, "memory limit");
  expect_error(run_text("y = ConstantOfShape(s)", {shape({huge, huge})}), ErrorCode::kInvalidInput, "too large");
  expect_error(run_text("y = Expand(a, s)", {zeros({1}), shape({-5})}), ErrorCode::kInvalidInput, "negative");
  expect_error(run_text("y = Tile(a, s)", {zeros({3}), shape({std::numeric_limits<int64_t>::max()})}), ErrorCode::kInvalidInput,
               "too large");
  expect_error(
      run_text("y = Range(a, b, c)", {Tensor::scalar<int64_t>(0), Tensor::scalar<int64_t>(huge), Tensor::scalar<int64_t>(1)}),
      ErrorCode::kLimit, "memory limit");
  expect_error(run_text("y = Pad(a, p)", {zeros({1}), shape({0, std::numeric_limits<int64_t>::max()})}),
               ErrorCode::kInvalidInput, "too large");
}

TEST(RunNode, RefusesWindowsAndRegionsOutOfRange) {
  const Tensor image = zeros({1, 1, 4, 4});
  expect_error(run_text("y = MaxPool<kernel_shape = [2, 2], pads = [-9223372036854775807, 0, 0, 0]>(x)", {image}),
               ErrorCode::kInvalidInput, "out of range");
  expect_error(run_text("y = MaxPool<kernel_shape = [1000000, 2], dilations = [1000000, 1]>(x)", {image}),
               ErrorCode::kInvalidInput, "out of range");
  const Tensor roi = Tensor::of<float>({8}, {0, 0, kNaN, 0, 1, 1, 1, 1});
  const Tensor scales = Tensor::of<float>({4}, {1, 1, 2, 2});
  expect_error(run_text("y = Resize<mode = \"linear\", coordinate_transformation_mode = \"tf_crop_and_resize\">(x, r, s)",
                        {image, roi, scales}),
               ErrorCode::kInvalidInput, "roi is out of range");
}

TEST(RunNode, NamesAnUnsupportedOperator) {
  expect_error(run_text("y = ImageDecoder(a)", {zeros({1})}, 20), ErrorCode::kUnsupported,
               "unsupported: ai.onnx::ImageDecoder (opset 20)");
  expect_error(run_text("y = com.microsoft.FastGelu(a)", {zeros({1})}), ErrorCode::kUnsupported, "com.microsoft::FastGelu");
}

TEST(RunNode, ReportsAMissingInput) {
  expect_error(run_text("y = Add(a, b)", {zeros({2})}), ErrorCode::kInvalidInput, "input 1 is missing");
  expect_error(run_text("y = Add(a, b)", {zeros({2}), Tensor()}), ErrorCode::kInvalidInput, "input 1 is missing");
}

TEST(RunNode, IntegerDivisionByZeroIsAnError) {
  const Tensor one = Tensor::scalar<int64_t>(1);
  expect_error(run_text("y = Div(a, b)", {one, Tensor::scalar<int64_t>(0)}), ErrorCode::kInvalidInput, "by zero");
  expect_error(run_text("y = Mod(a, b)", {one, Tensor::scalar<int64_t>(0)}), ErrorCode::kInvalidInput, "by zero");
  const auto lowest = Tensor::scalar<int64_t>(std::numeric_limits<int64_t>::min());
  EXPECT_TRUE(run_text("y = Div(a, b)", {lowest, Tensor::scalar<int64_t>(-1)}));
}

TEST(RunNode, MaxAndMinPropagateNaN) {
  for (const std::string op : {"Max", "Min"}) {
    const auto result =
        run_text("y = " + op + "(a, b)", {Tensor::of<float>({2}, {kNaN, 1}), Tensor::of<float>({2}, {1, kNaN})});
    ASSERT_TRUE(result);
    EXPECT_TRUE(std::isnan(values<float>((*result)[0])[0]));
    EXPECT_TRUE(std::isnan(values<float>((*result)[0])[1]));
  }
}

TEST(RunNode, SoftmaxOfARowOfMinusInfinityIsNaN) {
  const auto result = run_text("y = Softmax(a)", {Tensor::of<float>({2, 2}, {-kInfinity, -kInfinity, 0, -kInfinity})});
  ASSERT_TRUE(result);
  const auto y = values<float>((*result)[0]);
  EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]));
  EXPECT_EQ(y[2], 1.0f);
  EXPECT_EQ(y[3], 0.0f);
}

TEST(RunNode, SoftmaxBeforeOpset13IsFlattened) {
  const auto result = run_text("y = Softmax<axis = 1>(a)", {zeros({1, 2, 2})}, 11);
  ASSERT_TRUE(result);
  EXPECT_THAT(values<float>((*result)[0]), ElementsAre(0.25f, 0.25f, 0.25f, 0.25f));
}

TEST(RunNode, NegativeAxesOfFlattenedSoftmaxCountFromTheRank) {
  const auto result = run_text("y = Softmax<axis = -1>(a)", {zeros({2, 2})}, 11);
  ASSERT_TRUE(result);
  EXPECT_THAT(values<float>((*result)[0]), ElementsAre(0.5f, 0.5f, 0.5f, 0.5f));
}

TEST(RunNode, MatMulDoesNotSkipZerosNextToInfinities) {
  const auto result =
      run_text("y = MatMul(a, b)", {Tensor::of<float>({1, 2}, {0, 1}), Tensor::of<float>({2, 1}, {kInfinity, 1})});
  ASSERT_TRUE(result);
  EXPECT_TRUE(std::isnan(values<float>((*result)[0])[0]));
}

TEST(RunNode, ComparisonsWithNaNAreFalse) {
  const Tensor nan = Tensor::scalar<float>(kNaN);
  for (const std::string op : {"Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"}) {
    const auto result = run_text("y = " + op + "(a, b)", {nan, nan});
    ASSERT_TRUE(result);
    EXPECT_FALSE(values<bool>((*result)[0])[0]) << op;
  }
}

TEST(RunNode, HalvesRoundOnceForEachOperator) {
  const auto half = [](float value) { return Tensor::scalar<Half>(Half(value)); };
  const auto result = run_text("y = Add(a, b)", {half(1.0f), half(0x1p-11f)});
  ASSERT_TRUE(result);
  EXPECT_EQ(values<Half>((*result)[0])[0].bits, Half(1.0f).bits);
}

TEST(RunNode, AxesOfReduceSumMoveFromAttributeToInput) {
  const Tensor x = Tensor::of<float>({2, 2}, {1, 2, 3, 4});
  const auto before = run_text("y = ReduceSum<axes = [1], keepdims = 0>(x)", {x}, 11);
  const auto after = run_text("y = ReduceSum<keepdims = 0>(x, axes)", {x, Tensor::of<int64_t>({1}, {1})}, 13);
  ASSERT_TRUE(before && after);
  EXPECT_THAT(values<float>((*before)[0]), ElementsAre(3, 7));
  EXPECT_THAT(values<float>((*after)[0]), ElementsAre(3, 7));
}

TEST(RunNode, RefusesNodesWithBodies) {
  onnx::NodeProto node;
  node.set_op_type("If");
  node.add_input("c");
  auto* branch = node.add_attribute();
  branch->set_name("then_branch");
  branch->mutable_g();
  expect_error(run_node(node, std::vector<Tensor>{Tensor::scalar(true)}, {{"", 24}}), ErrorCode::kUnsupported, "If");
}

TEST(CanRun, LooksIntoSchemaBodies) {
  const Opsets opsets{{"", 24}};
  EXPECT_TRUE(can_run(parse_node("y = Add(a, b)"), opsets));
  EXPECT_TRUE(can_run(parse_node("y = Attention<q_num_heads = 2, kv_num_heads = 2>(q, k, v)"), opsets));
  EXPECT_TRUE(can_run(parse_node("y = RMSNormalization(x, s)"), opsets));
  EXPECT_FALSE(can_run(parse_node("y = ImageDecoder(a)"), opsets));
  EXPECT_FALSE(can_run(parse_node("y = Attention(q, k, v)"), {{"", 22}}));
}

TEST(IsRandom, KnowsTheOperatorsThatDraw) {
  EXPECT_TRUE(is_random(parse_node("y = RandomNormal<shape = [1]>()")));
  EXPECT_TRUE(is_random(parse_node("y = Dropout(x, ratio, training)")));
  EXPECT_TRUE(is_random(parse_node("y = Dropout<is_test = 0>(x)")));
  EXPECT_FALSE(is_random(parse_node("y = Dropout<is_test = 1>(x)")));
  EXPECT_FALSE(is_random(parse_node("y = Dropout(x)")));
  EXPECT_FALSE(is_random(parse_node("y = Add(a, b)")));
}

}  // namespace
}  // namespace attn_opt::testing
