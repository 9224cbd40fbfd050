// Products of 8-bit integers with zero points and scales for rows, columns and channels.
#include "tests/exec/models.h"

namespace attn_opt::testing {
namespace {

Tensor real(float value) { return Tensor::scalar<float>(value); }

TEST(QLinearConv, ScalesEachOutputChannelOfAGroup) {
  const Tensor x = Tensor::of<uint8_t>({1, 2, 4}, {76, 35, 80, 11, 228, 169, 149, 62});
  const Tensor w = Tensor::of<int8_t>({2, 1, 2}, {-8, -80, 69, -7});
  // ONNX Runtime's
  expect_output<uint8_t>(
      run_text("y = QLinearConv<group = 2, pads = [1, 0]>(x, xs, xz, w, ws, wz, ys, yz, b)",
               {x, real(.02f), Tensor::scalar<uint8_t>(100), w, Tensor::of<float>({2}, {.01f, .02f}),
                Tensor::of<int8_t>({2}, {0, 0}), real(.5f), Tensor::scalar<uint8_t>(7), Tensor::of<int32_t>({2}, {500, -900})}),
      0, {1, 2, 4}, {8, 9, 8, 10, 6, 13, 10, 9});
}

TEST(QLinearConv, PadsWithTheZeroPoint) {
  // By hand: the pads count nothing whatever the zero point.
  expect_output<uint8_t>(run_text("y = QLinearConv<pads = [1, 1]>(x, xs, xz, w, ws, wz, ys, yz)",
                                  {Tensor::of<uint8_t>({1, 1, 1}, {130}), real(1), Tensor::scalar<uint8_t>(128),
                                   Tensor::of<uint8_t>({1, 1, 1}, {3}), real(1), Tensor::scalar<uint8_t>(1), real(1),
                                   Tensor::scalar<uint8_t>(10)}),
                         0, {1, 1, 3}, {10, 14, 10});
}

TEST(QLinearMatMul, RoundsTiesToEvenBeforeTheZeroPoint) {
  // By hand: 0.5 and 1.5 round to 0 and 2, to which 1 is added; 1000 and -1000 saturate.
  expect_output<int8_t>(
      run_text("y = QLinearMatMul(a, as, az, b, bs, bz, ys, yz)",
               {Tensor::of<int8_t>({4, 1}, {1, 3, 100, -100}), real(.5f), Tensor::scalar<int8_t>(0),
                Tensor::of<int8_t>({1, 2}, {1, 20}), real(1), Tensor::scalar<int8_t>(0), real(1), Tensor::scalar<int8_t>(1)}),
      0, {4, 2}, {1, 11, 3, 31, 51, 127, -49, -128});
}

TEST(QLinearMatMul, ScalesRowsAndColumns) {
  // By hand: (a - a_zero)(b - b_zero) = [[1, 2], [3, 6]], times rows' [2, 1] and columns' [1, 10].
  expect_output<uint8_t>(
      run_text("y = QLinearMatMul(a, as, az, b, bs, bz, ys, yz)",
               {Tensor::of<uint8_t>({2, 1}, {3, 8}), Tensor::of<float>({2}, {2, 1}), Tensor::of<uint8_t>({2}, {2, 5}),
                Tensor::of<int8_t>({1, 2}, {0, 4}), Tensor::of<float>({2}, {1, 10}), Tensor::of<int8_t>({2}, {-1, 2}), real(1),
                Tensor::scalar<uint8_t>(0)}),
      0, {2, 2}, {2, 40, 3, 60});
}

TEST(QLinearMatMul, RoundsFloatsOnceAndSaturatesThem) {
  const auto floats = [](Dims dims, const std::vector<float>& values) {
    return *Tensor::of<float>(std::move(dims), values).cast(onnx::TensorProto::FLOAT8E4M3FN);
  };
  const Tensor zero = floats({}, {0});
  const auto result =
      run_text("y = QLinearMatMul(a, as, az, b, bs, bz, ys, yz)",
               {floats({2, 1}, {1.5, 448}), real(.5f), zero, floats({1, 2}, {1, 3}), real(1), zero, real(1), zero});
  ASSERT_TRUE(result) << result.error().message();
  ASSERT_EQ((*result)[0].type(), onnx::TensorProto::FLOAT8E4M3FN);
  // By hand: 0.75, 2.25, 224, and 672 beyond the largest value.
  expect_output<float>(std::vector{*(*result)[0].cast(onnx::TensorProto::FLOAT)}, 0, {2, 2}, {.75, 2.25, 224, 448});
  expect_error(run_text("y = MatMulInteger(a, b)", {floats({1, 1}, {1}), floats({1, 1}, {1})}), ErrorCode::kUnsupported,
               "element type");
}

TEST(MatMulInteger, TakesZeroPointsOfRowsAndColumns) {
  const Tensor a = Tensor::of<uint8_t>({2, 2}, {10, 11, 20, 22});
  const Tensor b = Tensor::of<int8_t>({2, 2}, {1, -2, 3, -4});
  // By hand: [[0, 1], [0, 2]] * [[2, -3], [4, -5]].
  for (const Dims& rows : {Dims{2}, Dims{2, 1}}) {
    expect_output<int32_t>(run_text("y = MatMulInteger(a, b, az, bz)",
                                    {a, b, Tensor::of<uint8_t>(rows, {10, 20}), Tensor::of<int8_t>({2}, {-1, 1})}),
                           0, {2, 2}, {4, -5, 8, -10});
  }
}

TEST(MatMulInteger, RefusesZeroPointsThatDoNotFit) {
  const Tensor a = Tensor::of<uint8_t>({2, 2}, {0, 0, 0, 0});
  const auto with = [&](const Tensor& zero) { return run_text("y = MatMulInteger(a, b, z)", {a, a, zero}); };
  expect_error(with(Tensor::of<uint8_t>({3}, {0, 0, 0})), ErrorCode::kInvalidInput, "do not broadcast");
  expect_error(with(Tensor::of<uint8_t>({3, 1, 2}, {})), ErrorCode::kInvalidInput, "zero point of shape");
  expect_error(with(Tensor::scalar<int8_t>(0)), ErrorCode::kInvalidInput, "types");
  expect_error(run_text("y = MatMulInteger(a, b)", {a, Tensor::of<uint8_t>({3, 2}, {})}), ErrorCode::kInvalidInput,
               "do not multiply");
}

TEST(ConvInteger, TakesAZeroPointForEachOutputChannel) {
  // By hand: x - 2 = [1, 3]; w - zero = [2], [-1].
  expect_output<int32_t>(
      run_text("y = ConvInteger(x, w, xz, wz)", {Tensor::of<uint8_t>({1, 1, 2}, {3, 5}), Tensor::of<int8_t>({2, 1, 1}, {5, 6}),
                                                 Tensor::scalar<uint8_t>(2), Tensor::of<int8_t>({2}, {3, 7})}),
      0, {1, 2, 2}, {2, 6, -1, -3});
  expect_error(run_text("y = ConvInteger(x, w)", {Tensor::of<uint8_t>({1, 1, 2}, {}), Tensor::scalar<int8_t>(5)}),
               ErrorCode::kInvalidInput, "do not fit");
}

}  // namespace
}  // namespace attn_opt::testing
