#include "src/trial/fill.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace attn_opt {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using P = onnx::TensorProto;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Elements of a tensor filled as TEXT says, in double.
std::vector<double> drawn(DataType type, const Dims& dims, const std::string& text) {
  const auto fill = parse_fill(text);
  EXPECT_TRUE(fill.has_value()) << text;
  if (!fill) return {};
  RandomNumbers random(7);
  const auto tensor = filled(type, dims, *fill, random);
  EXPECT_TRUE(tensor.has_value()) << text;
  if (!tensor) return {};
  EXPECT_EQ(tensor->type(), type);
  const Tensor values = *tensor->cast(P::DOUBLE);
  return {values.data<double>().begin(), values.data<double>().end()};
}

TEST(Fill, WritesWhatIsSaid) {
  EXPECT_THAT(drawn(P::FLOAT, {2, 2}, "ones"), Each(1));
  EXPECT_THAT(drawn(P::INT64, {3}, "zeros"), Each(0));
  EXPECT_THAT(drawn(P::INT64, {2, 2}, "iota"), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(drawn(P::FLOAT, {2}, "const(-inf)"), Each(-kInfinity));
  EXPECT_THAT(drawn(P::INT64, {5}, "values(3,5)"), ElementsAre(3, 5, 3, 5, 3));
  EXPECT_THAT(drawn(P::FLOAT, {}, "const(0.5)"), ElementsAre(0.5));
}

TEST(Fill, LowestIsThatOfTheType) {
  EXPECT_THAT(drawn(P::FLOAT, {1}, "const(lowest)"), ElementsAre(std::numeric_limits<float>::lowest()));
  EXPECT_THAT(drawn(P::FLOAT16, {1}, "const(lowest)"), ElementsAre(-65504));
  EXPECT_THAT(drawn(P::BFLOAT16, {1}, "const(lowest)"), ElementsAre(-0x1.fep127));
  EXPECT_THAT(drawn(P::DOUBLE, {1}, "const(lowest)"), ElementsAre(std::numeric_limits<double>::lowest()));
}

TEST(Fill, CausalKeepsTheKeysUpToTheQuery) {
  EXPECT_THAT(drawn(P::BOOL, {2, 3}, "causal"), ElementsAre(1, 1, 0, 1, 1, 1));
  EXPECT_THAT(drawn(P::FLOAT, {2, 2}, "causal(-1e4)"), ElementsAre(0, -1e4, 0, 0));
}

TEST(Fill, OneRowIsEmptyAndTheOthersAreNot) {
  const auto mask = drawn(P::BOOL, {1, 1, 4, 5}, "rows-one-empty");
  for (size_t row = 0; row < 4; ++row) {
    const bool empty = std::all_of(mask.begin() + row * 5, mask.begin() + row * 5 + 5, [](double x) { return x == 0; });
    EXPECT_EQ(empty, row == 0);
  }
  const auto bias = drawn(P::FLOAT, {4, 5}, "lowest-row");
  EXPECT_THAT(std::vector<double>(bias.begin(), bias.begin() + 5), Each(std::numeric_limits<float>::lowest()));
  EXPECT_EQ(bias[5], 0);
}

TEST(Fill, KeepKeepsAKeyInEveryRow) {
  const auto mask = drawn(P::INT64, {50, 4}, "keep(0.1)");
  int kept = 0;
  for (size_t i = 0; i < mask.size(); ++i) {
    kept += mask[i] == 1;
    EXPECT_TRUE(i % 4 != 0 || mask[i] == 1) << i;
  }
  EXPECT_GT(kept, 50);
  EXPECT_LT(kept, 100);
}

TEST(Fill, BoolsAreMasksThatLeaveEachRowAKey) {
  RandomNumbers random(1);
  const Tensor tensor = *filled(P::BOOL, {1, 1, 40, 4}, default_fill(P::BOOL), random);
  const auto mask = tensor.data<bool>();
  for (size_t row = 0; row < mask.size(); row += 4) EXPECT_TRUE(mask[row]) << row;
  const auto kept = std::ranges::count(mask, true);
  EXPECT_GT(kept, 60) << "masks that hide nothing tell nothing of what a mask does";
  EXPECT_LT(kept, 140);
  const Tensor alone = *filled(P::BOOL, {}, default_fill(P::BOOL), random);
  EXPECT_TRUE(alone.data<bool>()[0]) << "a switch is on";
}

TEST(Fill, DrawsFromTheDistribution) {
  double sum = 0, squares = 0;
  for (const double value : drawn(P::DOUBLE, {10000}, "normal")) {
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / 1e4, 0, 0.05);
  EXPECT_NEAR(squares / 1e4, 1, 0.05);
  std::map<double, int> counts;
  for (const double value : drawn(P::INT32, {3000}, "uniform(-1,1)")) ++counts[value];
  EXPECT_THAT(counts, ElementsAre(testing::Key(-1), testing::Key(0), testing::Key(1)));
}

TEST(Fill, WhatIsNoFillIsAnError) {
  for (const std::string text : {"", "normall", "const", "const()", "const(a)", "const(1", "normal(1)", "uniform(1)",
                                 "const(1,2)", "bernoulli", "ones,"}) {
    const auto fill = parse_fill(text);
    ASSERT_FALSE(fill.has_value()) << text;
    EXPECT_EQ(fill.error().code, ErrorCode::kUsage);
    EXPECT_THAT(fill.error().remedy, HasSubstr("rows-one-empty"));
  }
}

TEST(Fill, StringsAndComplexNumbersAreUnsupported) {
  RandomNumbers random(1);
  EXPECT_EQ(filled(P::STRING, {2}, default_fill(P::STRING), random).error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(filled(P::COMPLEX64, {2}, default_fill(P::COMPLEX64), random).error().code, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace attn_opt
