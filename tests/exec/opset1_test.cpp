// Operators as opset 1 has them. Expected values are those of their schemas' texts.
#include "tests/exec/models.h"

namespace attn_opt::testing {
namespace {

using ::testing::ElementsAre;

TEST(Opset1, SplitTakesItsLengthsInTheTypeOfTheData) {
  const auto result =
      run_text("a, b = Split<axis = 1>(x, lengths)", {Tensor::of<float>({1, 3}, {1, 2, 3}), Tensor::of<float>({2}, {1, 2})}, 1);
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_THAT(values<float>((*result)[0]), ElementsAre(1));
  EXPECT_THAT(values<float>((*result)[1]), ElementsAre(2, 3));
}

TEST(Opset1, UpsampleTakesScalesOfHeightAndWidth) {
  const auto result =
      run_text("y = Upsample<height_scale = 2.0, width_scale = 1.5>(x)", {Tensor::of<float>({1, 1, 2, 2}, {1, 2, 3, 4})}, 1);
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_EQ((*result)[0].dims(), (Dims{1, 1, 4, 3}));
  EXPECT_THAT(values<float>((*result)[0]), ElementsAre(1, 1, 2, 1, 1, 2, 3, 3, 4, 3, 3, 4));
  expect_error(run_text("y = Upsample<height_scale = 2.0, width_scale = 0.0>(x)", {Tensor::of<float>({1, 1, 1, 1}, {1})}, 1),
               ErrorCode::kInvalidInput, "out of range");
}

}  // namespace
}  // namespace attn_opt::testing
