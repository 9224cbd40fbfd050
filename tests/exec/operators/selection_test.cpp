// Unique, and operators that look at single elements' bits and ranges. Expected values are ONNX Runtime's.
#include <cmath>
#include <limits>

#include "tests/exec/models.h"

namespace attn_opt::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Unique, KeepsTheOrderOfFirstOccurrenceAlongAnyAxis) {
  const auto result = run_text("y, first, kind, counts = Unique<axis = 1, sorted = 0>(x)",
                               {Tensor::of<float>({2, 4}, {3, 1, 3, 2, 0, 5, 0, 5})});
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_EQ((*result)[0].dims(), (Dims{2, 3}));
  EXPECT_THAT(values<float>((*result)[0]), ElementsAre(3, 1, 2, 0, 5, 5));
  EXPECT_THAT(values<int64_t>((*result)[1]), ElementsAre(0, 1, 3));
  EXPECT_THAT(values<int64_t>((*result)[2]), ElementsAre(0, 1, 0, 2));
  EXPECT_THAT(values<int64_t>((*result)[3]), ElementsAre(2, 1, 1));
}

TEST(Unique, SortsSlicesByTheirContents) {
  const auto result =
      run_text("y, first, kind, counts = Unique<axis = -1>(x)", {Tensor::of<float>({2, 4}, {3, 1, 3, 2, 0, 5, 0, 5})});
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_THAT(values<float>((*result)[0]), ElementsAre(1, 2, 3, 5, 5, 0));
  EXPECT_THAT(values<int64_t>((*result)[1]), ElementsAre(1, 3, 0));
  EXPECT_THAT(values<int64_t>((*result)[2]), ElementsAre(2, 0, 2, 1));
}

TEST(Unique, TakesNaNForOneValueBehindTheNumbers) {
  const float nan = std::nanf("");
  const auto result = run_text("y, first, kind, counts = Unique(x)", {Tensor::of<float>({5}, {nan, 1, -0.0f, nan, 0.0f})});
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_THAT(values<int64_t>((*result)[1]), ElementsAre(2, 1, 0));
  EXPECT_THAT(values<int64_t>((*result)[3]), ElementsAre(2, 1, 2));
}

TEST(Unique, TakesStringsAndNothing) {
  const auto words = run_text("y = Unique(x)", {Tensor::of<std::string>({2, 2}, {"b", "a", "b", ""})});
  ASSERT_TRUE(words) << words.error().message();
  EXPECT_THAT(values<std::string>((*words)[0]), ElementsAre("", "a", "b"));
  const auto nothing = run_text("y, i, k, n = Unique(x)", {Tensor(onnx::TensorProto::STRING, {0, 2})});
  ASSERT_TRUE(nothing) << nothing.error().message();
  EXPECT_EQ((*nothing)[0].dims(), Dims{0});
  EXPECT_THAT(values<int64_t>((*nothing)[3]), IsEmpty());
  expect_error(run_text("y = Unique<axis = 2>(x)", {Tensor(onnx::TensorProto::FLOAT, {2, 2})}), ErrorCode::kInvalidInput,
               "axis 2");
}

TEST(Shrink, TruncatesIntegers) {
  const Tensor x = Tensor::of<int32_t>({5}, {5, -5, 1, -1, 0});
  const auto wide = run_text("y = Shrink<lambd = 1.5, bias = 1.5>(x)", {x});
  ASSERT_TRUE(wide) << wide.error().message();
  EXPECT_THAT(values<int32_t>((*wide)[0]), ElementsAre(3, -3, 0, 0, 0));
  const auto narrow = run_text("y = Shrink<lambd = 0.5, bias = 2.0>(x)", {x});
  EXPECT_THAT(values<int32_t>((*narrow)[0]), ElementsAre(3, -3, -1, 1, 0));
  const auto bytes = run_text("y = Shrink<lambd = 2.5, bias = 1.25>(x)", {Tensor::of<uint8_t>({4}, {2, 3, 0, 200})});
  EXPECT_THAT(values<uint8_t>((*bytes)[0]), ElementsAre(0, 1, 0, 198));
}

TEST(BitCast, KeepsBitsAlsoOfFloatsThatAreComputedInDouble) {
  ExecutorOptions in_double;
  in_double.compute_f64 = true;
  for (const ExecutorOptions& options : {ExecutorOptions{}, in_double}) {
    const auto result = run_text("y = BitCast<to = 6>(x)", {Tensor::of<float>({2}, {1, -2})}, 26, options);
    ASSERT_TRUE(result) << result.error().message();
    EXPECT_THAT(values<int32_t>((*result)[0]), ElementsAre(0x3f800000, -0x40000000));
  }
  const auto flags = run_text("y = BitCast<to = 9>(x)", {Tensor::of<uint8_t>({3}, {0, 1, 6})}, 26);
  ASSERT_TRUE(flags) << flags.error().message();
  EXPECT_THAT(values<bool>((*flags)[0]), ElementsAre(false, true, true));
  expect_error(run_text("y = BitCast<to = 7>(x)", {Tensor::scalar(1.0f)}, 26), ErrorCode::kInvalidInput, "width");
  expect_error(run_text("y = BitCast<to = 8>(x)", {Tensor::scalar(1.0f)}, 26), ErrorCode::kUnsupported, "string");
}

TEST(BitShift, ShiftsNothingOutOfRange) {
  const int64_t lowest = std::numeric_limits<int64_t>::min();
  const Tensor x = Tensor::of<int64_t>({3}, {-8, 8, -1});
  const auto right = run_text("y = BitShift<direction = \"RIGHT\">(x, n)", {x, Tensor::of<int64_t>({3}, {64, lowest, 63})}, 28);
  ASSERT_TRUE(right) << right.error().message();
  EXPECT_THAT(values<int64_t>((*right)[0]), ElementsAre(-1, 0, -1));
  const auto left = run_text("y = BitShift<direction = \"LEFT\">(x, n)", {x, Tensor::of<int64_t>({3}, {62, -1, 63})}, 28);
  EXPECT_THAT(values<int64_t>((*left)[0]), ElementsAre(0, 0, lowest));
}

}  // namespace
}  // namespace attn_opt::testing
