// com.microsoft::FusedMatMul against ONNX Runtime 1.31.
#include "tests/exec/models.h"

namespace attn_opt::testing {
namespace {

using ::testing::ElementsAre;

Expected<std::vector<Tensor>> run(const std::string& attributes, const std::vector<Tensor>& inputs) {
  return run_text("y = com.microsoft.FusedMatMul <" + attributes + "> (a, b)", inputs, Opsets{{"", 17}, {"com.microsoft", 1}});
}

TEST(FusedMatMul, TransposesBothFactorsAndScales) {
  std::vector<float> a, b;
  for (int i = 0; i < 12; ++i) {
    a.push_back(static_cast<float>(i - 5));
    b.push_back(static_cast<float>(i) * 0.5f - 1);
  }
  const auto y = run("transA: int = 1, transB: int = 1, alpha: float = 0.5",
                     {Tensor::of<float>({2, 3, 2}, a), Tensor::of<float>({4, 3}, b)});
  ASSERT_TRUE(y) << y.error().message();
  EXPECT_EQ((*y)[0].dims(), (Dims{2, 2, 4}));
  const auto data = (*y)[0].data<float>();
  EXPECT_THAT(std::vector<float>(data.begin(), data.end()),
              ElementsAre(3.25f, -3.5f, -10.25f, -17, 2.5f, -2, -6.5f, -11, -1.25f, 5.5f, 12.25f, 19, -2, 7, 16, 25));
}

/// A of shape (2, 3, 1) is three rows-by-columns factors (2, 1), one behind the other in each row.
TEST(FusedMatMul, TakesTheFirstAxisForRows) {
  const Tensor a = Tensor::of<float>({2, 3, 1}, {1, 2, 3, 4, 5, 6}), b = Tensor::of<float>({3, 1, 2}, {1, 10, 1, 100, 1, 1000});
  const std::vector<float> product{1, 10, 4, 40, 2, 200, 5, 500, 3, 3000, 6, 6000};
  const auto y = run("transBatchA: int = 1", {a, b});
  ASSERT_TRUE(y) << y.error().message();
  EXPECT_EQ((*y)[0].dims(), (Dims{3, 2, 2}));
  EXPECT_THAT((*y)[0].data<float>(), ::testing::ElementsAreArray(product));
  const Tensor columns = Tensor::of<float>({2, 3, 1}, {1, 1, 1, 10, 100, 1000});
  const auto same = run("transBatchA: int = 1, transBatchB: int = 1, transB: int = 1", {a, columns});
  ASSERT_TRUE(same) << same.error().message();
  EXPECT_THAT((*same)[0].data<float>(), ::testing::ElementsAreArray(product));
}

TEST(FusedMatMul, MovesBatchAxesThatThereAre) {
  const Tensor one = Tensor::of<float>({1, 1}, {1});
  const auto y = run("transBatchA: int = 1", {one, one});
  ASSERT_FALSE(y);
  EXPECT_EQ(y.error().code, ErrorCode::kInvalidInput);
}

}  // namespace
}  // namespace attn_opt::testing
