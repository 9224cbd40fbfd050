#include "tests/exec/models.h"

namespace attn_opt::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;

Tensor integer(int64_t value) { return Tensor::scalar(value); }

TEST(STFT, TakesTheWholeSignalForOneFrame) {
  const auto result = run_text("y = STFT(x, step)", {Tensor::of<float>({1, 4, 1}, {1, 2, 3, 4}), integer(2)}, 17);
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_EQ((*result)[0].dims(), (Dims{1, 1, 3, 2}));
  const auto near = [](float value) { return FloatNear(value, 1e-5f); };
  EXPECT_THAT(values<float>((*result)[0]), ElementsAre(near(10), near(0), near(-2), near(2), near(-2), near(0)));
}

TEST(STFT, RefusesFramesThatDoNotFit) {
  const Tensor x(onnx::TensorProto::FLOAT, {1, 8, 1});
  const Tensor window = Tensor::of<float>({3}, {1, 1, 1});
  expect_error(run_text("y = STFT(x, step)", {x, integer(0)}, 17), ErrorCode::kInvalidInput, "out of range");
  expect_error(run_text("y = STFT(x, step, , n)", {x, integer(1), Tensor(), integer(9)}, 17), ErrorCode::kInvalidInput,
               "out of range");
  expect_error(run_text("y = STFT(x, step, w, n)", {x, integer(1), window, integer(4)}, 17), ErrorCode::kInvalidInput,
               "frame_length");
  expect_error(run_text("y = STFT(x, step)", {Tensor(onnx::TensorProto::FLOAT, {1, 8, 2}), integer(1)}, 17),
               ErrorCode::kInvalidInput, "onesided");
}

TEST(MelWeightMatrix, RefusesEdgesBeyondTheSpectrogram) {
  const auto run = [](int64_t bins, int64_t length, int64_t rate, float low, float high) {
    return run_text("y = MelWeightMatrix(b, n, r, l, h)",
                    {integer(bins), integer(length), integer(rate), Tensor::scalar(low), Tensor::scalar(high)}, 17);
  };
  EXPECT_TRUE(run(4, 16, 8000, 0, 4000));
  expect_error(run(4, 16, 8000, 0, 8000), ErrorCode::kInvalidInput, "edges");
  expect_error(run(4, 16, 8000, 3000, 100), ErrorCode::kInvalidInput, "edges");
  expect_error(run(4, 16, 8000, -900, 100), ErrorCode::kInvalidInput, "edges");
  expect_error(run(4, 16, 0, 0, 4000), ErrorCode::kInvalidInput, "positive");
  expect_error(run(int64_t{1} << 40, 16, 8000, 0, 4000), ErrorCode::kLimit, "memory limit");
  expect_error(run(1, std::numeric_limits<int64_t>::max(), 8000, 0, 4000), ErrorCode::kLimit, "memory limit");
}

}  // namespace
}  // namespace attn_opt::testing
