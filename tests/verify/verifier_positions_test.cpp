// Masks made of positions, and is_causal in their place.
#include <gmock/gmock.h>

#include <limits>

#include "tests/verify/site_fixture.h"

namespace attn_opt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Scores where COMPARISON of "column" (keys) and "row" (queries) holds; FILL elsewhere.
AttentionModel model_of(const std::string& comparison, const std::string& fill = "-inf") {
  AttentionModel model;
  model.scores =
      "  zero = Constant<value = int64 {0}>()\n  one = Constant<value = int64 {1}>()\n"
      "  first = Constant<value_ints = [0]>()\n  second = Constant<value_ints = [1]>()\n"
      "  ls = Shape<start = 2, end = 3>(q)\n  ln = Squeeze(ls, first)\n  ss = Shape<start = 2, end = 3>(k)\n"
      "  sn = Squeeze(ss, first)\n  column = Range(zero, sn, one)\n  rows = Range(zero, ln, one)\n"
      "  row = Unsqueeze(rows, second)\n" +
      comparison + "  fill = Constant<value = float {" + fill +
      "}>()\n  scaled = Mul(product, c)\n  scores = Where(keep, scaled, fill)\n";
  return model;
}

/// What the verifier makes of is_causal in the place of the mask of MODEL.
Verification of_causal(const AttentionModel& model, const VerifyOptions& options = {}) {
  SiteFixture site(model);
  site.add_term(ScoreTerm::Kind::kKeep, "keep", -kInfinity);
  return site.verify(site.attention({"q", "k", "v"}, {GraphBuilder::attribute("is_causal", int64_t{1})}), options);
}

TEST(VerifierPositions, CausalFromTheFirstKey) {
  const Verification result =
      of_causal(model_of("  keep = LessOrEqual(column, row)\n"), {.accepted = {.all = false, .refinements = false}});
  EXPECT_EQ(result.verdict, Verdict::kVerified) << result.reason;
  EXPECT_GE(result.draws, 3);
  EXPECT_LT(result.algebra_difference, 1e-12);
}

TEST(VerifierPositions, LowestFill) {
  const Verification result = of_causal(model_of("  keep = LessOrEqual(column, row)\n", "-3.4028234663852886e38"));
  EXPECT_EQ(result.verdict, Verdict::kVerified) << result.reason;
}

class WrongCausal : public testing::TestWithParam<const char*> {};

TEST_P(WrongCausal, IsRefused) {
  const Verification result = of_causal(model_of(GetParam()));
  EXPECT_EQ(result.verdict, Verdict::kFailed) << result.reason;
}

INSTANTIATE_TEST_SUITE_P(
    VerifierPositions, WrongCausal,
    testing::Values("  next = Add(row, one)\n  keep = LessOrEqual(column, next)\n",
                    "  next = Add(row, one)\n  next2 = Add(next, one)\n  keep = Less(column, next2)\n",
                    "  keep = GreaterOrEqual(column, row)\n",
                    "  ahead = Sub(sn, ln)\n  last = Add(row, ahead)\n  keep = LessOrEqual(column, last)\n",
                    "  sooner = Sub(sn, one)\n  inside = Less(column, sooner)\n  seen = LessOrEqual(column, row)\n"
                    "  keep = And(inside, seen)\n",
                    "  far = Add(column, one)\n  before = Greater(far, row)\n  seen = LessOrEqual(column, row)\n"
                    "  keep = And(before, seen)\n"));

TEST(VerifierPositions, FillThatLeavesLaterKeysSomeWeightIsRefused) {
  EXPECT_EQ(of_causal(model_of("  keep = LessOrEqual(column, row)\n", "-5")).verdict, Verdict::kFailed);
}

AttentionModel without_maximum(const std::string& exponent = "scores") {
  AttentionModel model;
  model.weights =
      "  last = Constant<value_ints = [-1]>()\n  shift = Constant<value = float {-90}>()\n"
      "  shifted = Sub(scores, shift)\n  weights = Exp(" +
      exponent + ")\n  total = ReduceSum<keepdims = 1>(weights, last)\n  p = Div(weights, total)\n";
  return model;
}

Verification of_exponentials(const AttentionModel& model, double offset, double scale_error = 1,
                             const VerifyOptions& options = {}) {
  SiteFixture site(model);
  site.sdpa.exponent_offset = offset;
  site.assume("exp-in-range");
  site.scale *= scale_error;
  return site.verify(site.attention({"q", "k", "v"}), options);
}

TEST(VerifierPositions, ExponentialsOutOfRangeAreExplained) {
  EXPECT_EQ(of_exponentials(without_maximum(), 0).verdict, Verdict::kVerified);
  const Verification result = of_exponentials(without_maximum("shifted"), 90);
  EXPECT_EQ(result.verdict, Verdict::kVerified) << result.reason;
  EXPECT_THAT(result.explained_by, ElementsAre("exp-in-range"));
}

TEST(VerifierPositions, ExponentialsInRangeAreJudged) {
  EXPECT_EQ(of_exponentials(without_maximum(), 0, 1.01).verdict, Verdict::kFailed);
}

TEST(VerifierPositions, StrictRefusesWhatOnlyTheRangeExplains) {
  const Verification result =
      of_exponentials(without_maximum("shifted"), 90, 1, {.accepted = {.all = false, .refinements = false}});
  EXPECT_EQ(result.verdict, Verdict::kFailed);
  EXPECT_THAT(result.reason, HasSubstr("exp-in-range"));
}

TEST(VerifierPositions, RangeExplainsOnlyExponentialsOfTheScoresThemselves) {
  SiteFixture site(without_maximum("shifted"));
  site.assume("exp-in-range");
  // They overflow where the exact result is a number.
  EXPECT_THAT(site.verify(site.attention({"q", "k", "v"})).explained_by, ElementsAre("scores-finite"));
  const VerifyOptions exactly{.accepted = {.all = false, .ids = {"exp-in-range"}, .refinements = false}};
  EXPECT_EQ(site.verify(site.attention({"q", "k", "v"}), exactly).verdict, Verdict::kFailed);
}

}  // namespace
}  // namespace attn_opt
