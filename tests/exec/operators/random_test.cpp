#include <cmath>

#include "tests/exec/models.h"
#include "tests/exec/random_case.h"

namespace attn_opt::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::Lt;
using ::testing::Ne;

constexpr int64_t kMany = 20000;

double mean_of(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double deviation_of(const std::vector<float>& values) {
  const double mean = mean_of(values);
  double sum = 0;
  for (const float value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size()));
}

std::vector<float> draw(const std::string& node, const std::vector<Tensor>& inputs = {}) {
  const auto result = run_text(node, inputs);
  EXPECT_TRUE(result) << result.error().message();
  return result ? values<float>((*result)[0]) : std::vector<float>();
}

TEST(Random, NormalHasItsMeanAndDeviation) {
  const auto drawn = draw("y = RandomNormal<shape = [100, 200], mean = 3.0, scale = 2.0>()");
  ASSERT_EQ(drawn.size(), static_cast<size_t>(kMany));
  EXPECT_NEAR(mean_of(drawn), 3, 5 * 2 / std::sqrt(kMany));
  EXPECT_NEAR(deviation_of(drawn), 2, 5 * 2 / std::sqrt(2 * kMany));
}

TEST(Random, UniformFillsItsRange) {
  const Tensor x(onnx::TensorProto::INT8, {kMany});
  const auto drawn = draw("y = RandomUniformLike<low = -1.0, high = 3.0, dtype = 1>(x)", {x});
  EXPECT_THAT(drawn, Each(AllOf(Ge(-1), Le(3))));
  EXPECT_NEAR(mean_of(drawn), 1, 5 * 4 / std::sqrt(12 * kMany));
  EXPECT_NEAR(deviation_of(drawn), 4 / std::sqrt(12), 0.02);
  expect_error(run_text("y = RandomUniformLike(x)", {x}), ErrorCode::kInvalidInput, "random numbers of type int8");
}

TEST(Random, DrawsTheSameForTheSameNodeAndSeedOnly) {
  const auto first = draw("a = RandomNormal<shape = [8]>()");
  EXPECT_EQ(draw("a = RandomNormal<shape = [8]>()"), first);
  EXPECT_THAT(draw("b = RandomNormal<shape = [8]>()"), Ne(first));
  EXPECT_THAT(draw("a = RandomNormal<shape = [8], seed = 1.0>()"), Ne(first));
}

TEST(Random, DrawsAnewInEachIterationAndCall) {
  const auto looped = run_model(R"(<ir_version: 10, opset_import: ["" : 22]> agraph (int64 n) => (float[n, 4] y) {
      y = Loop(n, "") <body = step (int64 i, bool on) => (bool on_out, float[4] row) {
        on_out = Identity(on)
        row = RandomNormal<shape = [4]>()
      }>
    })",
                                {{"n", Tensor::scalar<int64_t>(2)}});
  ASSERT_TRUE(looped) << looped.error().message();
  const auto rows = values<float>((*looped)[0]);
  EXPECT_NE(rows[0], rows[4]);
  const auto called = run_model(R"(<ir_version: 10, opset_import: ["" : 22, "own" : 1]>
    agraph () => (float[4] a, float[4] b) {
      a = own.noise()
      b = own.noise()
    }
    <domain: "own", opset_import: ["" : 22]>
    noise () => (y) { y = RandomNormal<shape = [4]>() })",
                                {});
  ASSERT_TRUE(called) << called.error().message();
  EXPECT_THAT(values<float>((*called)[0]), Ne(values<float>((*called)[1])));
}

std::string judged(const std::string& text, const Feeds& feeds) {
  const auto results = run_model(text, feeds);
  return results ? improbable(parse_model(text).graph(), feeds, *results) : results.error().message();
}

Tensor repeated(float value) { return Tensor::of<float>({kMany}, std::vector<float>(kMany, value)); }

TEST(Random, BernoulliGivesOneWithItsProbability) {
  const std::string text =
      "<ir_version: 10, opset_import: [\"\" : 22]> agraph (float[20000] x) => (bool[20000] y) { y = "
      "Bernoulli<dtype = "
      "9>(x) }";
  EXPECT_THAT(judged(text, {{"x", repeated(0.25f)}}), IsEmpty());
  EXPECT_THAT(judged(text, {{"x", repeated(1)}}), IsEmpty());
  expect_error(run_text("y = Bernoulli(x)", {Tensor::scalar(1.5f)}), ErrorCode::kInvalidInput, "[0, 1]");
}

TEST(Random, DropoutInTrainingKeepsItsShareAndScalesIt) {
  const Feeds feeds{{"x", repeated(3)}, {"r", Tensor::scalar(0.75f)}, {"t", Tensor::scalar(true)}};
  EXPECT_THAT(judged("<ir_version: 10, opset_import: [\"\" : 22]> agraph (float[20000] x, float r, bool t) => "
                     "(float[20000] y, bool[20000] m) { y, m = Dropout(x, r, t) }",
                     feeds),
              IsEmpty());
  for (const float ratio : {1.0f, -0.5f, std::nanf("")}) {
    expect_error(run_text("y = Dropout(x, r, t)", {feeds.at("x"), Tensor::scalar(ratio), feeds.at("t")}),
                 ErrorCode::kInvalidInput, "[0, 1)");
  }
}

TEST(Random, DropoutBeforeOpset7TrainsUnlessItIsToldOtherwise) {
  const auto training = run_text("y, m = Dropout<ratio = 0.25>(x)", {repeated(3)}, 6);
  ASSERT_TRUE(training) << training.error().message();
  const auto mask = values<float>((*training)[1]);
  EXPECT_NEAR(mean_of(mask), 0.75, 5 * std::sqrt(0.75 * 0.25 / kMany));
  EXPECT_FLOAT_EQ(values<float>((*training)[0])[0], mask[0] * 4);
  const auto testing = run_text("y = Dropout<is_test = 1>(x)", {repeated(3)}, 6);
  ASSERT_TRUE(testing) << testing.error().message();
  EXPECT_THAT(values<float>((*testing)[0]), Each(3));
  const auto later = run_text("y, m = Dropout<ratio = 0.25>(x)", {repeated(3)}, 7);
  EXPECT_THAT(values<float>((*later)[1]), Each(1));
}

TEST(Random, MultinomialFollowsLogProbabilities) {
  const float never = -std::numeric_limits<float>::infinity();
  const auto result = run_text("y = Multinomial<sample_size = 20000, dtype = 7>(x)",
                               {Tensor::of<float>({2, 3}, {std::log(1.0f), std::log(3.0f), never, never, 100, never})});
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_EQ((*result)[0].dims(), (Dims{2, kMany}));
  const auto outcomes = values<int64_t>((*result)[0]);
  const std::vector<float> first(outcomes.begin(), outcomes.begin() + kMany);
  EXPECT_THAT(first, Each(Lt(2)));
  EXPECT_NEAR(mean_of(first), 0.75, 5 * std::sqrt(0.75 * 0.25 / kMany));
  EXPECT_THAT(std::vector<int64_t>(outcomes.begin() + kMany, outcomes.end()), Each(1));
}

TEST(Random, RefusesWhatCannotBeDrawn) {
  const float never = -std::numeric_limits<float>::infinity();
  expect_error(run_text("y = Multinomial(x)", {Tensor::of<float>({1, 2}, {never, never})}), ErrorCode::kInvalidInput,
               "do not give probabilities");
  expect_error(run_text("y = Multinomial<sample_size = 4611686018427387904>(x)", {Tensor::of<float>({1, 1}, {0})}),
               ErrorCode::kLimit, "memory limit");
  expect_error(run_text("y = Multinomial(x)", {Tensor(onnx::TensorProto::FLOAT, {1, 0})}), ErrorCode::kInvalidInput,
               "no classes");
  expect_error(run_text("y = RandomNormal<shape = [-1]>()", {}), ErrorCode::kInvalidInput, "negative");
  expect_error(run_text("y = RandomNormal<shape = [1], dtype = 7>()", {}), ErrorCode::kInvalidInput, "int64");
}

}  // namespace
}  // namespace attn_opt::testing
