// Convolutions, transposed, integer and quantized, where ONNX's node tests do not look.
#include "tests/exec/models.h"

namespace attn_opt::testing {
namespace {

Tensor zeros(Dims dims) { return Tensor(onnx::TensorProto::FLOAT, std::move(dims)); }

TEST(ConvTranspose, TakesGroupsWithUnevenPadsAndOutputPadding) {
  const Tensor x = Tensor::of<float>({1, 4, 2, 2}, {2, -3, -2, -2, -2, 2, 3, 1, -3, -3, -1, 0, 1, 0, -2, -2});
  const Tensor w = Tensor::of<float>({4, 1, 2, 1}, {1, 2, -3, -3, 0, -1, 3, 0});
  // ONNX Runtime's
  expect_output<float>(run_text("y = ConvTranspose<group = 2, strides = [2, 2], pads = [1, 0, 0, 0], "
                                "output_padding = [1, 0]>(x, w, b)",
                                {x, w, Tensor::of<float>({2}, {-1, 0})}),
                       0, {1, 2, 4, 3},
                       {9, -1, -13, -12, -1, -6, -14, -1, -8, -1, -1, -1, 3, 0, 3, -6, 0, -6, 1, 0, 0, 0, 0, 0});
}

TEST(ConvTranspose, SplitsPadsForTheOutputShape) {
  const Tensor w = Tensor::of<float>({1, 1, 4}, {2, 2, 3, 2});
  // ONNX Runtime's
  expect_output<float>(run_text("y = ConvTranspose<strides = [2], auto_pad = \"SAME_UPPER\">(x, w)",
                                {Tensor::of<float>({1, 1, 3}, {1, 1, -2}), w}, 11),
                       0, {1, 1, 6}, {2, 5, 4, -1, -2, -6});
  // ONNX Runtime's. The equations of opset 1 have the halves the other way round, against its own words on
  // auto_pad: later versions have them as here.
  const Tensor x = Tensor::of<float>({1, 1, 2}, {-2, -1});
  const Tensor v = Tensor::of<float>({1, 1, 4}, {1, 1, 1, 3});
  for (const std::string shape : {"[4]", "[1, 1, 4]"}) {
    expect_output<float>(run_text("y = ConvTranspose<output_shape = " + shape + ">(x, w)", {x, v}, 1), 0, {1, 1, 4},
                         {-3, -3, -7, -3});
  }
  expect_output<float>(run_text("y = ConvTranspose<output_shape = [4], auto_pad = \"SAME_UPPER\">(x, w)", {x, v}, 1), 0,
                       {1, 1, 4}, {-2, -3, -3, -7});
}

TEST(ConvTranspose, KeepsTheShapeOfAutoPadWhereKernelsLeaveGaps) {
  // The schema: output_shape[i] = input_shape[i] * strides[i]. ONNX Runtime ends with the last kernel, at 3.
  expect_output<float>(run_text("y = ConvTranspose<strides = [2], auto_pad = \"SAME_UPPER\">(x, w)",
                                {Tensor::of<float>({1, 1, 2}, {5, 7}), Tensor::of<float>({1, 1, 1}, {1})}),
                       0, {1, 1, 4}, {5, 0, 7, 0});
}

TEST(ConvTranspose, RoundsHalvesOnce) {
  const auto halves = [](const Tensor& tensor) { return *tensor.cast(onnx::TensorProto::FLOAT16); };
  const Tensor x = halves(Tensor::of<float>({1, 2, 1}, {1, 0x1p-11f}));
  const Tensor w = halves(Tensor::of<float>({2, 1, 1}, {1, 1}));
  const Tensor b = halves(Tensor::of<float>({1}, {0x1p-11f}));
  const auto result = run_text("y = ConvTranspose(x, w, b)", {x, w, b});
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_EQ(static_cast<float>(values<Half>((*result)[0])[0]), 1 + 0x1p-10f);
}

TEST(ConvTranspose, RefusesWhatDoesNotFit) {
  const Tensor x = zeros({2, 2, 3});
  const Tensor w = zeros({2, 1, 3});
  const auto refuses = [&](const std::string& attributes, ErrorCode code, const std::string& what) {
    expect_error(run_text("y = ConvTranspose<" + attributes + ">(x, w)", {x, w}), code, what);
  };
  refuses("group = 3", ErrorCode::kInvalidInput, "do not fit");
  refuses("kernel_shape = [2]", ErrorCode::kInvalidInput, "kernel_shape is [2]");
  refuses("group = 0", ErrorCode::kInvalidInput, "do not fit");
  refuses("strides = [1073741824]", ErrorCode::kInvalidInput, "out of range");
  refuses("strides = [9223372036854775807]", ErrorCode::kInvalidInput, "out of range");
  refuses("strides = [500000000]", ErrorCode::kLimit, "memory limit");
  refuses("dilations = [1000000000]", ErrorCode::kInvalidInput, "kernel is out of range");
  refuses("pads = [5, 5]", ErrorCode::kInvalidInput, "output's shape is out of range");
  refuses("pads = [-9223372036854775807, 0]", ErrorCode::kInvalidInput, "pads are out of range");
  refuses("output_padding = [-1]", ErrorCode::kInvalidInput, "output_padding");
  refuses("output_shape = [1, 1, 4]", ErrorCode::kInvalidInput, "output_shape");
  refuses("output_shape = [1000000000]", ErrorCode::kLimit, "memory limit");
  expect_error(run_text("y = ConvTranspose<group = 4611686018427387904>(x, w)", {zeros({1, 0, 3}), zeros({0, 9, 3})}),
               ErrorCode::kInvalidInput, "too many groups");
  expect_error(run_text("y = ConvTranspose(x, w)", {x, zeros({2, 1})}), ErrorCode::kInvalidInput, "do not fit");
  expect_error(run_text("y = ConvTranspose(x, w, b)", {x, w, zeros({2})}), ErrorCode::kInvalidInput, "bias");
}

TEST(Conv, RefusesAKernelShapeThatIsNotTheWeights) {
  expect_error(run_text("y = Conv<kernel_shape = [3]>(x, w)", {zeros({1, 1, 4}), zeros({1, 1, 2})}), ErrorCode::kInvalidInput,
               "kernel_shape is [3]");
}

TEST(ConvTranspose, TakesEmptyTensors) {
  expect_output<float>(run_text("y = ConvTranspose(x, w)", {zeros({0, 2, 3}), zeros({2, 1, 3})}), 0, {0, 1, 5}, {});
  expect_output<float>(
      run_text("y = ConvTranspose(x, w, b)", {zeros({1, 0, 1}), zeros({0, 1, 2}), Tensor::of<float>({1}, {3})}), 0, {1, 1, 2},
      {3, 3});
}

TEST(Col2Im, AddsWhereBlocksOverlap) {
  const std::vector<float> columns{-3, -2, 1, 0, -1, -2, -3, 1, 1, 0, 3, 3, -2, 1, 1, -2};
  const std::vector<float> image{-3, -3, -2, 2, -5, 2, 3, 4, -2};  // ONNX Runtime's
  const Tensor x = Tensor::of<float>({1, 4, 4}, columns);
  const Tensor shape = Tensor::of<int64_t>({2}, {3, 3});
  const Tensor block = Tensor::of<int64_t>({2}, {2, 2});
  expect_output<float>(run_text("y = Col2Im(x, s, b)", {x, shape, block}), 0, {1, 1, 3, 3}, image);
  expect_output<int8_t>(run_text("y = Col2Im(x, s, b)", {*x.cast(onnx::TensorProto::INT8), shape, block}), 0, {1, 1, 3, 3},
                        std::vector<int8_t>(image.begin(), image.end()));
}

TEST(Col2Im, RefusesBlocksThatDoNotFit) {
  const auto run = [](Dims columns, const std::vector<int64_t>& image, const std::vector<int64_t>& block) {
    const auto vector = [](const auto& v) { return Tensor::of<int64_t>({static_cast<int64_t>(v.size())}, v); };
    return run_text("y = Col2Im(x, s, b)", {zeros(std::move(columns)), vector(image), vector(block)});
  };
  expect_error(run({1, 4, 5}, {3, 3}, {2, 2}), ErrorCode::kInvalidInput, "do not fit blocks");
  expect_error(run({1, 5, 4}, {3, 3}, {2, 2}), ErrorCode::kInvalidInput, "do not fit blocks");
  expect_error(run({1, 4, 4}, {3, 3}, {2}), ErrorCode::kInvalidInput, "spatial rank");
  expect_error(run({1, 4, 4}, {3, -3}, {2, 2}), ErrorCode::kInvalidInput, "out of range");
  expect_error(run({1, 4, 4}, {3, 3}, {2, 0}), ErrorCode::kInvalidInput, "out of range");
  expect_error(run({1, 1, 0}, {1 << 29, 1 << 29}, {1, 1 << 30}), ErrorCode::kInvalidInput, "do not fit blocks");
  expect_error(run({1, 1 << 30, 0}, {1 << 29, 1 << 29}, {1, 1 << 30}), ErrorCode::kLimit, "memory limit");
}

TEST(Pools, PassTheirTimeOnElementsNotOnPads) {
  const Tensor x = Tensor::of<float>({1, 1, 1, 2}, {3, 4});
  const std::string window =
      "<kernel_shape = [1000000000, 1000000000], pads = [500000000, 500000000, 500000000, 500000000]>(x)";
  expect_output<float>(run_text("y = MaxPool" + window, {x}), 0, {1, 1, 2, 3}, {4, 4, 4, 4, 4, 4});
  expect_output<float>(run_text("y = AveragePool" + window, {x}), 0, {1, 1, 2, 3}, {3.5, 3.5, 3.5, 3.5, 3.5, 3.5});
}

}  // namespace
}  // namespace attn_opt::testing
