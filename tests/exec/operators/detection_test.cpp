// NonMaxSuppression, MaxUnpool, LpPool, LRN, Lp norms, Det and ReverseSequence, where ONNX's node tests do
// not look.
#include <cmath>
#include <limits>

#include "tests/exec/models.h"

namespace attn_opt::testing {
namespace {

Tensor zeros(Dims dims) { return Tensor(onnx::TensorProto::FLOAT, std::move(dims)); }
Tensor reals(Dims dims, const std::vector<float>& values) { return Tensor::of<float>(std::move(dims), values); }
Tensor integers(Dims dims, const std::vector<int64_t>& values) { return Tensor::of<int64_t>(std::move(dims), values); }
const float kNaN = std::nanf("");

const Tensor kBoxes = reals({1, 4, 4}, {0, 0, 2, 2, 0, 1, 2, 3, 5, 5, 6, 6, 0, 0, 2, 2});

TEST(NonMaxSuppression, SelectsNothingByDefault) {
  const Tensor scores = reals({1, 1, 4}, {1, 2, 3, 4});
  expect_output<int64_t>(run_text("y = NonMaxSuppression(b, s)", {kBoxes, scores}), 0, {0, 3}, {});
  expect_output<int64_t>(run_text("y = NonMaxSuppression(b, s, m)", {kBoxes, scores, integers({}, {-5})}), 0, {0, 3}, {});
  expect_output<int64_t>(run_text("y = NonMaxSuppression(b, s, m)", {zeros({1, 0, 4}), zeros({1, 2, 0}), integers({1}, {9})}),
                         0, {0, 3}, {});
}

TEST(NonMaxSuppression, OrdersEqualScoresByIndexAndPutsNaNLast) {
  // By hand: box 1 overlaps 0 and 3 by 1/3 each, 0 and 3 are one.
  const Tensor scores = reals({1, 2, 4}, {1, 1, 1, 1, kNaN, 1, 2, kNaN});
  const auto run = [&](float threshold) {
    return run_text("y = NonMaxSuppression(b, s, m, t)",
                    {kBoxes, scores, integers({}, {std::numeric_limits<int64_t>::max()}), reals({}, {threshold})}, 10);
  };
  expect_output<int64_t>(run(0.5f), 0, {6, 3}, {0, 0, 0, 0, 0, 1, 0, 0, 2, 0, 1, 2, 0, 1, 1, 0, 1, 0});
  expect_output<int64_t>(run(0.25f), 0, {4, 3}, {0, 0, 0, 0, 0, 2, 0, 1, 2, 0, 1, 1});
  expect_output<int64_t>(
      run_text("y = NonMaxSuppression(b, s, m, , l)", {kBoxes, scores, integers({1}, {4}), Tensor(), reals({1}, {1})}), 0,
      {1, 3}, {0, 1, 2});
}

TEST(NonMaxSuppression, RefusesWhatDoesNotFit) {
  expect_error(run_text("y = NonMaxSuppression(b, s)", {kBoxes, zeros({1, 1, 3})}), ErrorCode::kInvalidInput, "do not fit");
  expect_error(run_text("y = NonMaxSuppression(b, s)", {kBoxes, zeros({2, 1, 4})}), ErrorCode::kInvalidInput, "do not fit");
  expect_error(run_text("y = NonMaxSuppression(b, s, m)", {kBoxes, zeros({1, 1, 4}), integers({2}, {1, 1})}),
               ErrorCode::kInvalidInput, "input 2 is not a scalar");
  expect_error(run_text("y = NonMaxSuppression(b, s, m, t)", {kBoxes, zeros({1, 1, 4}), integers({}, {1}), integers({}, {1})}),
               ErrorCode::kInvalidInput, "input 3 is not a scalar");
}

TEST(MaxUnpool, UndoesMaxPool) {
  // By hand; the indices count in the pooled tensor, through batches and channels.
  const Tensor x = reals({2, 1, 4}, {1, 5, 2, 3, 9, 8, 7, 6});
  const auto pooled = run_text("y, i = MaxPool<kernel_shape = [2], strides = [2]>(x)", {x});
  ASSERT_TRUE(pooled) << pooled.error().message();
  for (const int opset : {9, 11, 22}) {
    expect_output<float>(run_text("y = MaxUnpool<kernel_shape = [2], strides = [2]>(x, i)", *pooled, opset), 0, {2, 1, 4},
                         {0, 5, 0, 3, 9, 0, 7, 0});
  }
}

TEST(MaxUnpool, CountsIndicesInWhatWasPooledWhateverTheOutputShape) {
  // By hand, as ONNX's test data have it: index 2 is (1, 0) of 2 x 2. ONNX Runtime counts in the output's
  // shape.
  expect_output<float>(run_text("y = MaxUnpool<kernel_shape = [2, 2]>(x, i, s)",
                                {reals({1, 1, 1, 1}, {3}), integers({1, 1, 1, 1}, {2}), integers({4}, {1, 1, 2, 3})}),
                       0, {1, 1, 2, 3}, {0, 0, 0, 3, 0, 0});
}

TEST(MaxUnpool, RefusesIndicesOutOfRange) {
  const auto run = [](const std::string& attributes, int64_t index, const std::vector<int64_t>& shape) {
    std::vector<Tensor> inputs{reals({1, 1, 1}, {3}), integers({1, 1, 1}, {index})};
    if (!shape.empty()) inputs.push_back(integers({static_cast<int64_t>(shape.size())}, shape));
    return run_text("y = MaxUnpool<" + attributes + ">(x, i" + (shape.empty() ? ")" : ", s)"), inputs);
  };
  const auto refuses = [&](const std::string& attributes, int64_t index, const std::vector<int64_t>& shape,
                           const std::string& what) {
    expect_error(run(attributes, index, shape), ErrorCode::kInvalidInput, what);
  };
  refuses("kernel_shape = [2]", 2, {}, "out of range");
  refuses("kernel_shape = [2]", -1, {}, "out of range");
  refuses("kernel_shape = [2]", 1, {1, 1, 1}, "out of range");
  refuses("kernel_shape = [2]", 1, {1, 1}, "rank");
  refuses("kernel_shape = [2]", 0, {1, 1, -1}, "negative");
  refuses("kernel_shape = [2, 2]", 0, {}, "spatial rank");
  refuses("kernel_shape = [2], pads = [2, 2]", 0, {}, "output's shape");
  refuses("kernel_shape = [9223372036854775807]", 0, {}, "out of range");
  expect_output<float>(run("kernel_shape = [2]", 1, {1, 1, 3}), 0, {1, 1, 3}, {0, 3, 0});
}

TEST(LpPool, TakesAFractionalOrderInOpset1Only) {
  // By hand: (1 + 2)^2 and (0.5^3 + 1)^(1/3).
  expect_output<float>(run_text("y = LpPool<p = 0.5, kernel_shape = [2]>(x)", {reals({1, 1, 2}, {-1, 4})}, 1), 0, {1, 1, 1},
                       {9});
  expect_output<float>(run_text("y = GlobalLpPool<p = 0.5>(x)", {reals({1, 1, 2}, {-1, 4})}, 1), 0, {1, 1, 1}, {9});
  expect_output<float>(run_text("y = GlobalLpPool<p = 3>(x)", {reals({1, 1, 2}, {-1, 0.5})}, 2), 0, {1, 1, 1}, {1.0400419f});
  expect_error(run_text("y = LpPool<p = 0, kernel_shape = [2]>(x)", {reals({1, 1, 2}, {-1, 4})}), ErrorCode::kInvalidInput,
               "p is out of range");
  expect_error(run_text("y = LpPool(x)", {reals({1, 1, 2}, {-1, 4})}, 1), ErrorCode::kInvalidInput, "spatial rank");
}

TEST(LpPool, HasTheSchemasShapes) {
  // By hand: ceil((4 - 5) / 2 + 1) = 1, and without ceil_mode none.
  const Tensor x = reals({1, 1, 4}, {1, 2, 4, 8});
  const std::string window = "y = LpPool<p = 1, kernel_shape = [3], strides = [2], dilations = [2]";
  expect_output<float>(run_text(window + ", ceil_mode = 1>(x)", {x}, 18), 0, {1, 1, 1}, {5});
  expect_output<float>(run_text(window + ">(x)", {x}, 18), 0, {1, 1, 0}, {});
  // By hand: ceil(4 / 2) windows that reach 5 elements. ONNX Runtime pads for undilated kernels and finds
  // one.
  expect_output<float>(run_text(window + ", auto_pad = \"SAME_UPPER\">(x)", {x}, 18), 0, {1, 1, 2}, {10, 10});
}

TEST(LpPool, SumsWhatWindowsShow) {
  // By hand: a window that hangs over in ceil_mode counts its elements alone; ONNX's reference makes up for
  // those it lacks.
  expect_output<float>(
      run_text("y = LpPool<p = 1, kernel_shape = [2], strides = [2], ceil_mode = 1>(x)", {reals({1, 1, 3}, {1, -2, 3})}), 0,
      {1, 1, 2}, {3, 3});
  expect_output<float>(run_text("y = GlobalLpPool(x)", {zeros({1, 2, 0})}), 0, {1, 2, 1}, {0, 0});
}

TEST(LpNormalization, LeavesZerosAndTakesAbsoluteValues) {
  // By hand. ONNX's reference sums signed values for p = 1.
  const Tensor x = reals({2, 2}, {1, 0, -3, 0});
  for (const int opset : {1, 22}) {
    expect_output<float>(run_text("y = LpNormalization<p = 1, axis = 0>(x)", {x}, opset), 0, {2, 2}, {0.25, 0, -0.75, 0});
  }
  expect_error(run_text("y = LpNormalization<p = 3>(x)", {x}), ErrorCode::kInvalidInput, "neither 1 nor 2");
  expect_error(run_text("y = LpNormalization<axis = 2>(x)", {x}), ErrorCode::kInvalidInput, "axis 2");
}

TEST(Lrn, ReachesFurtherBehindForEvenSizes) {
  // By hand: size 2 sums this channel and the next, whatever the rank; ONNX's reference takes rank 4 alone.
  for (const int opset : {1, 13}) {
    expect_output<float>(
        run_text("y = LRN<size = 2, alpha = 2.0, beta = 1.0, bias = 1.0>(x)", {reals({1, 3, 1}, {1, 2, 3})}, opset), 0,
        {1, 3, 1}, {1 / 6.0f, 2 / 14.0f, 3 / 10.0f});
  }
  expect_output<float>(run_text("y = LRN<size = 9223372036854775807, alpha = 1.0>(x)", {reals({1, 2}, {1, 2})}), 0, {1, 2},
                       {1, 2});
  expect_error(run_text("y = LRN<size = 0>(x)", {zeros({1, 2})}), ErrorCode::kInvalidInput, "size");
  expect_error(run_text("y = LRN<size = 1>(x)", {zeros({2})}), ErrorCode::kInvalidInput, "channels");
}

TEST(Det, PivotsAndTakesBatches) {
  // By hand.
  expect_output<float>(run_text("y = Det(x)", {reals({2, 2, 2}, {0, 2, 3, 4, 1, 2, 2, 4})}, 11), 0, {2}, {-6, 0});
  expect_output<float>(run_text("y = Det(x)", {zeros({3, 0, 0})}), 0, {3}, {1, 1, 1});
  expect_output<float>(run_text("y = Det(x)", {zeros({0, 2, 2})}), 0, {0}, {});
  expect_error(run_text("y = Det(x)", {zeros({2, 3})}), ErrorCode::kInvalidInput, "square");
  expect_error(run_text("y = Det(x)", {zeros({3})}), ErrorCode::kInvalidInput, "square");
}

TEST(ReverseSequence, MovesRowsOfAnyType) {
  const Tensor x = Tensor::of<std::string>({3, 2, 1}, {"a", "b", "c", "d", "e", "f"});
  // By hand.
  expect_output<std::string>(run_text("y = ReverseSequence(x, l)", {x, integers({2}, {3, 0})}, 10), 0, {3, 2, 1},
                             {"e", "b", "c", "d", "a", "f"});
  expect_output<std::string>(
      run_text("y = ReverseSequence<batch_axis = 0, time_axis = 1>(x, l)", {x, integers({3}, {2, 1, 2})}), 0, {3, 2, 1},
      {"b", "a", "c", "d", "f", "e"});
  const auto refuses = [&](const std::string& attributes, const Tensor& lengths, const std::string& what) {
    expect_error(run_text("y = ReverseSequence<" + attributes + ">(x, l)", {x, lengths}), ErrorCode::kInvalidInput, what);
  };
  refuses("batch_axis = 1", integers({2}, {4, 1}), "sequence_lens");
  refuses("batch_axis = 1", integers({2}, {-1, 1}), "sequence_lens");
  refuses("batch_axis = 1", integers({3}, {1, 1, 1}), "sequence_lens");
  refuses("batch_axis = 0", integers({3}, {1, 1, 1}), "not 0 and 1");
  refuses("batch_axis = 2, time_axis = 1", integers({1}, {1}), "not 0 and 1");
}

}  // namespace
}  // namespace attn_opt::testing
