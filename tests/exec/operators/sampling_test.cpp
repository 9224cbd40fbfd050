// GridSample, DeformConv and pooling of regions, where ONNX's node tests do not look.
#include <cmath>
#include <limits>

#include "tests/exec/models.h"

namespace attn_opt::testing {
namespace {

Tensor zeros(Dims dims) { return Tensor(onnx::TensorProto::FLOAT, std::move(dims)); }
const float kNaN = std::nanf("");

TEST(GridSample, BringsPositionsToTheBorderBeforeCubicInterpolation) {
  // ONNX's reference. ONNX Runtime interpolates at the position outside, of elements repeated beyond the
  // border: the schema has border values used for locations out of bounds.
  for (const std::string mode : {"cubic", "bicubic"}) {
    expect_output<float>(run_text("y = GridSample<mode = \"" + mode + "\", padding_mode = \"border\">(x, g)",
                                  {Tensor::of<float>({1, 1, 3, 2}, {-3, -3, 2, 0, 1, 1}),
                                   Tensor::of<float>({1, 1, 2, 2}, {-1.5, 0.25, 0.5, 1.2f})},
                                  mode == "cubic" ? 20 : 16),
                         0, {1, 1, 1, 2}, {2.188965f, 1});
  }
}

TEST(GridSample, ReflectsInVolumesAndRows) {
  // ONNX Runtime's
  expect_output<float>(run_text("y = GridSample<padding_mode = \"reflection\">(x, g)",
                                {Tensor::of<float>({1, 1, 2, 2, 2}, {1, -3, 0, -2, -1, 3, 0, -3}),
                                 Tensor::of<float>({1, 1, 1, 2, 3}, {-1.5, 0.25, 0.5, 0.5, 1.2f, -3})}),
                       0, {1, 1, 1, 1, 2}, {-0.25, -3});
  // ONNX's reference
  expect_output<float>(run_text("y = GridSample<padding_mode = \"reflection\", align_corners = 1>(x, g)",
                                {Tensor::of<float>({1, 1, 3}, {0, -3, 2}), Tensor::of<float>({1, 2, 1}, {-1.5, 0.5})}),
                       0, {1, 1, 2}, {-1.5, -0.5});
}

TEST(GridSample, TakesIntegersAndStrings) {
  const Tensor grid = Tensor::of<float>({1, 2, 1}, {-0.25, 0.5});
  expect_output<uint8_t>(run_text("y = GridSample(x, g)", {Tensor::of<uint8_t>({1, 1, 2}, {10, 21}), grid}), 0, {1, 1, 2},
                         {12, 21});  // of 12.75 and 21
  const int64_t odd = (int64_t{1} << 60) + 1;
  expect_output<int64_t>(run_text("y = GridSample<mode = \"nearest\">(x, g)", {Tensor::of<int64_t>({1, 1, 2}, {7, odd}), grid}),
                         0, {1, 1, 2}, {7, odd});
  expect_output<std::string>(
      run_text("y = GridSample<mode = \"nearest\">(x, g)", {Tensor::of<std::string>({1, 1, 2}, {"a", "b"}), grid}), 0,
      {1, 1, 2}, {"a", "b"});
}

TEST(GridSample, StaysInTheImageWhateverThePositions) {
  const Tensor x = Tensor::of<float>({1, 1, 2}, {3, 4});
  const Tensor grid = Tensor::of<float>({1, 3, 1}, {kNaN, 1e30f, -std::numeric_limits<float>::infinity()});
  for (const std::string mode : {"nearest", "linear", "cubic"}) {
    const auto run = [&](const std::string& padding, const Tensor& image) {
      return run_text("y = GridSample<mode = \"" + mode + "\", padding_mode = \"" + padding + "\">(x, g)", {image, grid});
    };
    expect_output<float>(run("zeros", x), 0, {1, 1, 3}, {0, 0, 0});
    expect_output<float>(run("border", Tensor::of<float>({1, 1, 1}, {3})), 0, {1, 1, 3}, {3, 3, 3});
    EXPECT_TRUE(run("border", x));
    EXPECT_TRUE(run("reflection", x));
  }
  expect_output<float>(run_text("y = GridSample<align_corners = 1, padding_mode = \"reflection\">(x, g)",
                                {Tensor::of<float>({1, 1, 1}, {3}), grid}),
                       0, {1, 1, 3}, {3, 3, 3});
}

TEST(GridSample, RefusesGridsThatDoNotFit) {
  const auto refuses = [](const Tensor& x, const Tensor& grid, const std::string& what) {
    expect_error(run_text("y = GridSample(x, g)", {x, grid}), ErrorCode::kInvalidInput, what);
  };
  refuses(zeros({1, 1, 2, 2}), zeros({2, 1, 1, 2}), "does not fit");
  refuses(zeros({1, 1, 2, 2}), zeros({1, 1, 1, 3}), "does not fit");
  refuses(zeros({1, 1}), zeros({1, 0}), "does not fit");
  refuses(zeros({1, 1, 0, 2}), zeros({1, 1, 1, 2}), "nothing to sample");
  expect_error(run_text("y = GridSample<mode = \"lanczos\">(x, g)", {zeros({1, 1, 2}), zeros({1, 1, 1})}),
               ErrorCode::kInvalidInput, "mode is lanczos");
  expect_output<float>(run_text("y = GridSample(x, g)", {zeros({1, 0, 2}), zeros({1, 3, 1})}), 0, {1, 0, 3}, {});
}

TEST(DeformConv, MovesEachGroupByItsOwnOffsets) {
  // ONNX Runtime's
  const std::vector<float> y{1.1875, 1, -3.5, 1, 1, 1, -1, -1, -1, -1, -2.125, -1};
  const std::vector<float> offsets{0,    2,   2,   -1.5, -1.5, -1,  0, 1.5, 0,    2,   -0.5, 2,    0.5,  1,    -1,   0.5,
                                   1.5,  1.5, 1.5, 2,    -1.5, 1.5, 0, 1,   -1,   -2,  -2,   2,    2,    -1,   -0.5, -1,
                                   -1.5, 1.5, 1,   -2,   -1.5, 0.5, 2, 2,   -1.5, 0.5, -2,   -1.5, -1.5, -0.5, -0.5, 1};
  expect_output<float>(
      run_text("y = DeformConv<group = 2, offset_group = 2>(x, w, o, b, m)",
               {Tensor::of<float>({1, 2, 3, 3}, {3, 3, 1, 3, -1, -2, 0, 0, 1, 3, -2, 2, -3, -1, 2, -2, 1, 0}),
                Tensor::of<float>({2, 1, 1, 2}, {0, 3, 2, 2}), Tensor::of<float>({1, 8, 3, 2}, offsets),
                Tensor::of<float>({2}, {1, -1}),
                Tensor::of<float>({1, 4, 3, 2}, {0, -0.25, 1, 0.25, 0.5, 0.5,  -0.25, 1, -1, -0.5,  -0.75, -1,
                                                 1, -1,    0, 0.75, 0.5, 0.75, -1,    0, -1, -0.75, 0.75,  -1})}),
      0, {1, 2, 3, 2}, y);
}

TEST(DeformConv, IsAConvolutionOfAnyRankWhereNothingMoves) {
  const Tensor x = Tensor::of<float>({1, 1, 4}, {1, 2, 3, 4});
  const Tensor w = Tensor::of<float>({1, 1, 2}, {1, 10});
  expect_output<float>(run_text("y = DeformConv<pads = [1, 0]>(x, w, o)", {x, w, zeros({1, 2, 4})}), 0, {1, 1, 4},
                       {10, 21, 32, 43});
  expect_output<float>(
      run_text("y = DeformConv(x, w, o)", {x, w, Tensor::of<float>({1, 2, 3}, {kNaN, 1e30f, -1e30f, 0.5, 0, 0})}), 0, {1, 1, 3},
      {25, 30, 40});
}

TEST(DeformConv, RefusesWhatDoesNotFit) {
  const auto refuses = [](const std::string& attributes, Dims x, Dims offsets, const std::string& what) {
    expect_error(run_text("y = DeformConv<" + attributes + ">(x, w, o)",
                          {zeros(std::move(x)), zeros({1, 1, 2}), zeros(std::move(offsets))}),
                 ErrorCode::kInvalidInput, what);
  };
  refuses("group = 1", {1, 1, 4}, {1, 2, 4}, "input 2 is of shape");
  refuses("group = 1", {1, 1, 4}, {1, 3, 3}, "input 2 is of shape");
  refuses("group = 1", {1, 2, 4}, {1, 2, 3}, "do not fit");
  refuses("offset_group = 2", {1, 1, 4}, {1, 4, 3}, "offset_group");
  refuses("offset_group = 0", {1, 1, 4}, {1, 0, 3}, "offset_group");
  refuses("offset_group = 4611686018427387904", {1, 1, 4}, {1, 0, 3}, "offset_group");
}

const std::vector<float> kImage{1, -3, -1, 3, -1, -1, -3, 2, -2, 0, -3, -3, 2, -3, 0, -1};

TEST(RoiAlign, ShiftsByHalfAPixelSinceOpset16) {
  const std::vector<Tensor> inputs{Tensor::of<float>({1, 1, 4, 4}, kImage), Tensor::of<float>({1, 4}, {0, 0, 3, 3}),
                                   Tensor::of<int64_t>({1}, {0})};
  const std::string size = "output_height = 2, output_width = 2";
  // ONNX Runtime's
  const std::vector<float> unshifted{-1.261719f, -0.9570312f, -0.96875f, -1.996094f};
  expect_output<float>(run_text("y = RoiAlign<" + size + ">(x, r, i)", inputs, 10), 0, {1, 1, 2, 2}, unshifted);
  expect_output<float>(
      run_text("y = RoiAlign<coordinate_transformation_mode = \"output_half_pixel\", " + size + ">(x, r, i)", inputs), 0,
      {1, 1, 2, 2}, unshifted);
  expect_output<float>(run_text("y = RoiAlign<sampling_ratio = 1, " + size + ">(x, r, i)", inputs, 16), 0, {1, 1, 2, 2},
                       {-0.25, -1.75, -1.375, -2.3125});
  // ONNX Runtime's and, with its test data, ONNX's: the largest weighted neighbour of the samples, though the
  // schema speaks of samples' values.
  expect_output<float>(run_text("y = RoiAlign<mode = \"max\", sampling_ratio = 2, output_width = 2>(x, r, i)", inputs), 0,
                       {1, 1, 1, 2}, {0.75, 0.28125});
}

TEST(RoiAlign, RefusesRegionsOutOfRange) {
  const auto run = [](const std::string& attributes, float corner, int64_t image) {
    return run_text(
        "y = RoiAlign<" + attributes + ">(x, r, i)",
        {zeros({1, 1, 4, 4}), Tensor::of<float>({1, 4}, {0, 0, corner, corner}), Tensor::of<int64_t>({1}, {image})});
  };
  const auto refuses = [&](const std::string& attributes, float corner, int64_t image, ErrorCode code,
                           const std::string& what) { expect_error(run(attributes, corner, image), code, what); };
  refuses("output_width = 1", 1, 1, ErrorCode::kInvalidInput, "of image 1, which there is not");
  refuses("output_width = 1", 1, -1, ErrorCode::kInvalidInput, "of image -1");
  refuses("output_width = 1", 1e30f, 0, ErrorCode::kInvalidInput, "region is out of range");
  refuses("output_width = 1", kNaN, 0, ErrorCode::kInvalidInput, "region is out of range");
  refuses("output_width = 1", 1e11f, 0, ErrorCode::kLimit, "memory limit");
  refuses("sampling_ratio = 9223372036854775807, output_height = 3", 1, 0, ErrorCode::kInvalidInput, "too large");
  refuses("output_width = 0", 1, 0, ErrorCode::kInvalidInput, "output's size");
  refuses("output_width = 1000000000, output_height = 1000000000", 1, 0, ErrorCode::kLimit, "memory limit");
  EXPECT_TRUE(run("sampling_ratio = 1", kNaN, 0));
  EXPECT_TRUE(run("output_width = 2", -5, 0));  // of no extent
  expect_error(run_text("y = RoiAlign(x, r, i)", {zeros({1, 1, 0, 4}), zeros({1, 4}), Tensor::of<int64_t>({1}, {0})}),
               ErrorCode::kInvalidInput, "images are out of range");
  expect_error(run_text("y = RoiAlign(x, r, i)", {zeros({1, 1, 4, 4}), zeros({2, 4}), Tensor::of<int64_t>({1}, {0})}),
               ErrorCode::kInvalidInput, "batch_indices");
  expect_output<float>(run_text("y = RoiAlign(x, r, i)", {zeros({1, 1, 4, 4}), zeros({0, 4}), Tensor::of<int64_t>({0}, {})}), 0,
                       {0, 1, 1, 1}, {});
}

TEST(MaxRoiPool, RoundsRegionsToElements) {
  // ONNX Runtime's
  for (const int opset : {1, 22}) {
    expect_output<float>(
        run_text("y = MaxRoiPool<pooled_shape = [2, 2], spatial_scale = 0.5>(x, r)",
                 {Tensor::of<float>({1, 1, 4, 4}, kImage), Tensor::of<float>({2, 5}, {0, 1, 0, 6, 2, 0, 9, 9, 12, 12})}, opset),
        0, {2, 1, 2, 2}, {-1, 3, -1, 2, 0, 0, 0, 0});
  }
}

TEST(MaxRoiPool, RefusesRegionsOutOfRange) {
  const auto run = [](const std::string& shape, float image, float corner) {
    return run_text("y = MaxRoiPool<pooled_shape = " + shape + ">(x, r)",
                    {zeros({1, 1, 4, 4}), Tensor::of<float>({1, 5}, {image, -corner, -corner, corner, corner})});
  };
  EXPECT_TRUE(run("[2, 2]", 0, 1e30f));
  EXPECT_TRUE(run("[2, 2]", 0, kNaN));
  expect_error(run("[2, 2]", 1, 1), ErrorCode::kInvalidInput, "which there is not");
  expect_error(run("[2, 2]", kNaN, 1), ErrorCode::kInvalidInput, "which there is not");
  expect_error(run("[2, -2]", 0, 1), ErrorCode::kInvalidInput, "output's size");
  expect_error(run("[2]", 0, 1), ErrorCode::kInvalidInput, "output's size");
  expect_error(run("[1000000000, 1]", 0, 1), ErrorCode::kLimit, "memory limit");
}

}  // namespace
}  // namespace attn_opt::testing
