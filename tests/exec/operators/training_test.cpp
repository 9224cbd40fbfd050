// Expected values are those of ONNX's reference.
#include "tests/exec/models.h"

namespace attn_opt::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;

const Opsets kTraining{{"", 24}, {"ai.onnx.preview.training", 1}};

Expected<std::vector<Tensor>> adam(int64_t updates, const Dims& gradient_dims = {2}) {
  return run_text(
      "x1, v1, h1 = ai.onnx.preview.training.Adam<norm_coefficient = 0.1, norm_coefficient_post = 0.01, "
      "alpha = 0.9, beta = 0.99, epsilon = 0.01>(r, t, x, g, v, h)",
      {Tensor::scalar(0.1f), Tensor::scalar(updates), Tensor::of<float>({2}, {1, 2}),
       Tensor::of<float>(gradient_dims, {-1, 0.5f}), Tensor::of<float>({2}, {0.2f, 0.4f}),
       Tensor::of<float>({2}, {0.1f, 0.3f})},
      kTraining);
}

TEST(Training, AdamCorrectsItsBiasFromTheFirstUpdateOn) {
  const auto at_start = adam(0);
  ASSERT_TRUE(at_start) << at_start.error().message();
  EXPECT_THAT(values<float>((*at_start)[0]), ElementsAre(FloatNear(0.96358132f, 1e-6f), FloatNear(1.90390799f, 1e-6f)));
  const auto later = adam(3);
  ASSERT_TRUE(later) << later.error().message();
  EXPECT_THAT(values<float>((*later)[0]), ElementsAre(FloatNear(0.9731993f, 1e-6f), FloatNear(1.93161004f, 1e-6f)));
  EXPECT_THAT(values<float>((*later)[1]), ElementsAre(FloatNear(0.09f, 1e-6f), FloatNear(0.43f, 1e-6f)));
  EXPECT_THAT(values<float>((*later)[2]), ElementsAre(FloatNear(0.1071f, 1e-6f), FloatNear(0.3019f, 1e-6f)));
}

TEST(Training, RefusesStatesThatDoNotFit) {
  expect_error(adam(1, {1}), ErrorCode::kInvalidInput, "of shape [1]");
  const Tensor x = Tensor::of<float>({1}, {1});
  const std::string node =
      "x1, v1 = ai.onnx.preview.training.Momentum<alpha = 0.9, beta = 0.1, norm_coefficient = 0.0, "
      "mode = \"standard\">";
  const Tensor updates = Tensor::scalar<int64_t>(1);
  expect_error(run_text(node + "(r, t, x, g)", {x, updates, x, x}, kTraining), ErrorCode::kInvalidInput, "not every");
  expect_error(run_text(node + "(r, t, x, g, v)", {Tensor::of<float>({2}, {1, 2}), updates, x, x, x}, kTraining),
               ErrorCode::kInvalidInput, "not a scalar");
}

TEST(Training, GradientsAreNotComputed) {
  expect_error(
      run_text("dx = ai.onnx.preview.training.Gradient<xs = [\"x\"], y = \"y\">(x)", {Tensor::scalar(1.0f)}, kTraining),
      ErrorCode::kUnsupported, "ai.onnx.preview.training::Gradient");
}

}  // namespace
}  // namespace attn_opt::testing
