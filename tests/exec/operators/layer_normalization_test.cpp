// ONNX Runtime's own LayerNormalization and SimplifiedLayerNormalization against ONNX Runtime 1.31.
#include <algorithm>

#include "tests/exec/models.h"

namespace attn_opt::testing {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

const Tensor kX = Tensor::of<float>({2, 3}, {1, 2, 4, -1, 0.5f, 3});
const Tensor kScale = Tensor::of<float>({3}, {1, 2, 0.5f});
const Tensor kBias = Tensor::of<float>({3}, {0, 1, -1});

Tensor half(const Tensor& tensor) { return *tensor.cast(onnx::TensorProto::FLOAT16); }

/// Expects a tensor of TYPE and DIMS with VALUES.
void expect_tensor(const Tensor& tensor, DataType type, const Dims& dims, const std::vector<float>& values) {
  EXPECT_EQ(tensor.type(), type);
  EXPECT_EQ(tensor.dims(), dims);
  const Tensor floats = *tensor.cast(onnx::TensorProto::FLOAT);
  const auto data = floats.data<float>();
  const float tolerance = type == onnx::TensorProto::FLOAT16 ? 5e-4f : 2e-6f;
  EXPECT_THAT(std::vector<float>(data.begin(), data.end()), Pointwise(FloatNear(tolerance), values));
}

constexpr auto kFloat = onnx::TensorProto::FLOAT;
constexpr auto kHalf = onnx::TensorProto::FLOAT16;
const std::vector<float> kNormal{-1.0690414f, 0.46547943f, -0.3318491f, -1.1111659f, 0.59593964f, -0.3434021f};
const std::vector<float> kSimplified{0.3779642f, 1.5118568f, 0.7559284f, -0.54100096f, 0.54100096f, 0.81150144f};

TEST(LayerNormalizationBefore17, HasThreeOutputs) {
  const auto y = run_text("y, m, v = LayerNormalization (x, s, b)", {kX, kScale, kBias}, 14);
  ASSERT_TRUE(y) << y.error().message();
  ASSERT_EQ(y->size(), 3u);
  expect_tensor((*y)[0], kFloat, {2, 3}, kNormal);
  expect_tensor((*y)[1], kFloat, {2, 1}, {2.3333333f, 0.8333334f});
  expect_tensor((*y)[2], kFloat, {2, 1}, {0.80178106f, 0.6060904f});
}

TEST(LayerNormalizationBefore17, NeedsNoBias) {
  const auto y = run_text("y = LayerNormalization <epsilon = 0.5> (x, s)", {kX, kScale}, 14);
  ASSERT_TRUE(y) << y.error().message();
  expect_tensor((*y)[0], kFloat, {2, 3}, {-0.929981f, -0.4649904f, 0.5812382f, -1.0213244f, -0.37139073f, 0.6035098f});
}

TEST(LayerNormalizationBefore17, IsOfTheTypeOfItsScale) {
  const auto y = run_text("y = LayerNormalization (x, s, b)", {half(kX), kScale, kBias}, 14);
  ASSERT_TRUE(y) << y.error().message();
  expect_tensor((*y)[0], kFloat, {2, 3}, kNormal);
}

TEST(LayerNormalizationSince17, IsOfOneType) {
  EXPECT_FALSE(run_text("y = LayerNormalization (x, s, b)", {half(kX), kScale, kBias}, 17));
}

TEST(SimplifiedLayerNormalization, DividesByTheRootOfTheMeanSquare) {
  for (const int opset : {8, 14, 24}) {
    const auto y = run_text("y, v = SimplifiedLayerNormalization (x, s)", {kX, kScale}, opset);
    ASSERT_TRUE(y) << y.error().message();
    ASSERT_EQ(y->size(), 2u);
    expect_tensor((*y)[0], kFloat, {2, 3}, kSimplified);
    expect_tensor((*y)[1], kFloat, {2, 1}, {0.3779642f, 0.54100096f});
  }
}

TEST(SimplifiedLayerNormalization, OverAllAxesFromTheGivenOne) {
  const Tensor scale = Tensor::of<float>({2, 3}, {1, 2, 0.5f, 1, 2, 0.5f});
  const auto y = run_text("y, v = SimplifiedLayerNormalization <axis = 0, epsilon = 0.25> (x, s)", {kX, scale}, 24);
  ASSERT_TRUE(y) << y.error().message();
  expect_tensor((*y)[0], kFloat, {2, 3}, {0.4280258f, 1.7121032f, 0.8560516f, -0.4280258f, 0.4280258f, 0.6420387f});
  expect_tensor((*y)[1], kFloat, {1, 1}, {0.4280258f});
}

TEST(SimplifiedLayerNormalization, IsOfTheTypeOfItsScale) {
  const auto wide = run_text("y = SimplifiedLayerNormalization (x, s)", {half(kX), kScale}, 14);
  ASSERT_TRUE(wide) << wide.error().message();
  expect_tensor((*wide)[0], kFloat, {2, 3}, kSimplified);
  const auto narrow = run_text("y = SimplifiedLayerNormalization (x, s)", {kX, half(kScale)}, 14);
  ASSERT_TRUE(narrow) << narrow.error().message();
  expect_tensor((*narrow)[0], kHalf, {2, 3}, {0.378f, 1.512f, 0.756f, -0.541f, 0.541f, 0.8115f});
}

TEST(CopiesBetweenDevices, CopyNothing) {
  const auto y = run_text("y = MemcpyToHost (x)", {kX}, 24);
  ASSERT_TRUE(y) << y.error().message();
  expect_tensor((*y)[0], kFloat, {2, 3}, {1, 2, 4, -1, 0.5f, 3});
}

}  // namespace
}  // namespace attn_opt::testing
