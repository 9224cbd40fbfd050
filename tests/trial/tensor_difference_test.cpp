#include "src/trial/tensor_difference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace attn_opt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();

Tensor floats(const std::vector<float>& values) { return Tensor::of<float>({static_cast<int64_t>(values.size())}, values); }

TEST(TensorDifference, IsTheLargest) {
  const auto found = difference(floats({1, 10, 0}), floats({1.5, 11, 0.25}), {0, 2});
  EXPECT_TRUE(found.agrees());
  EXPECT_EQ(found.absolute, 1);
  EXPECT_EQ(found.relative, 0.5);
}

TEST(TensorDifference, ToleranceIsRelativeToWhatIsExpected) {
  EXPECT_TRUE(difference(floats({100}), floats({101}), {0.01, 0}).agrees());
  EXPECT_FALSE(difference(floats({100}), floats({101.5}), {0.01, 0}).agrees());
  const auto found = difference(floats({1, 2, 3, 4}), floats({1, 2.5, 4, 4}), {0, 0.1});
  EXPECT_EQ(found.beyond, 2);
  EXPECT_THAT(found.worst, ElementsAre(2));
}

TEST(TensorDifference, NanAgreesOnlyWithNan) {
  EXPECT_TRUE(difference(floats({kNan, 1}), floats({kNan, 1}), {}).agrees());
  const auto found = difference(floats({kNan, 1}), floats({0, 1}), {1, 1});
  EXPECT_FALSE(found.agrees());
  EXPECT_EQ(found.nans_elsewhere, 1);
  EXPECT_FALSE(difference(floats({0}), floats({kNan}), {1e9, 1e9}).agrees());
}

TEST(TensorDifference, InfinityAgreesOnlyWithItself) {
  EXPECT_TRUE(difference(floats({kInfinity, -kInfinity}), floats({kInfinity, -kInfinity}), {}).agrees());
  EXPECT_FALSE(difference(floats({kInfinity}), floats({-kInfinity}), {1, 1}).agrees());
  EXPECT_FALSE(difference(floats({kInfinity}), floats({1}), {1, 1}).agrees());
  EXPECT_FALSE(difference(floats({1}), floats({kInfinity}), {1, 1}).agrees());
}

TEST(TensorDifference, CountsInfinitiesOfOneSide) {
  const auto found = difference(floats({kInfinity, -kInfinity, 1, 2}), floats({kInfinity, kInfinity, kInfinity, 2}), {});
  EXPECT_EQ(found.infinities_expected, 2);
  EXPECT_EQ(found.infinities_elsewhere, 2);
}

TEST(TensorDifference, SaysWhereTheLargestIs) {
  const auto found = difference(floats({1, 2, 3}), floats({1, 2.5, 3.25}), {0, 1});
  EXPECT_TRUE(found.agrees());
  EXPECT_THAT(found.worst, ElementsAre(1));
  EXPECT_THAT(to_string(found), HasSubstr("at (1)"));
}

TEST(TensorDifference, IntegersAreExact) {
  const auto integers = [](int64_t value) { return Tensor::of<int64_t>({1}, {value}); };
  EXPECT_TRUE(difference(integers(5), integers(5), {}).agrees());
  EXPECT_FALSE(difference(integers(5), integers(6), {}).agrees());
  constexpr int64_t kBeyondDouble = (int64_t{1} << 60) + 1;
  EXPECT_FALSE(difference(integers(kBeyondDouble), integers(kBeyondDouble - 1), {}).agrees());
}

TEST(TensorDifference, StringsAreExact) {
  const auto strings = [](const std::string& text) { return Tensor::of<std::string>({1}, {text}); };
  EXPECT_TRUE(difference(strings("a"), strings("a"), {}).agrees());
  EXPECT_FALSE(difference(strings("a"), strings("b"), {}).agrees());
}

TEST(TensorDifference, CountsUnitsInTheLastPlaceOfTheType) {
  EXPECT_EQ(difference(floats({1}), floats({1 + 3 * 0x1p-23f}), {}).ulp, 3);
  EXPECT_EQ(difference(floats({0}), floats({0x1p-149f}), {}).ulp, 1);
  const auto halves = [](float value) { return Tensor::of<Half>({1}, {Half(value)}); };
  EXPECT_EQ(difference(halves(2), halves(2 + 0x1p-9f), {}).ulp, 1);
}

TEST(TensorDifference, ComparesSequencesElementByElement) {
  const auto of = [](std::vector<Tensor> elements) { return Tensor::sequence(std::move(elements)); };
  const Tensor expected = of({floats({1}), floats({2, 3})});
  EXPECT_TRUE(difference(expected, of({floats({1}), floats({2, 3})}), {}).agrees());
  EXPECT_THAT(difference(expected, of({floats({1}), floats({2, 4})}), {}).worst, ElementsAre(1, 1));
  EXPECT_FALSE(difference(expected, of({floats({1})}), {}).agrees());
  EXPECT_EQ(element_type(expected), onnx::TensorProto::FLOAT);
  EXPECT_EQ(element_type(of({})), onnx::TensorProto::UNDEFINED);
  EXPECT_FALSE(difference(expected, Tensor::empty_optional(), {}).agrees());
  EXPECT_TRUE(difference(Tensor::empty_optional(), Tensor::empty_optional(), {}).agrees());
}

TEST(TensorDifference, SaysWhatCannotBeCompared) {
  const auto dims = difference(floats({1, 2}), floats({1}), {});
  EXPECT_FALSE(dims.agrees());
  EXPECT_EQ(dims.incomparable, "dims (1) instead of (2)");
  EXPECT_THAT(difference(floats({1}), Tensor::of<double>({1}, {1}), {}).incomparable, HasSubstr("float64"));
}

}  // namespace
}  // namespace attn_opt
