// A precondition that holds for no draw must be listed: what it hides is drawn on purpose.
#include <gmock/gmock.h>

#include <limits>

#include "tests/verify/site_fixture.h"

namespace attn_opt {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr char kKeep[] =
    "  fill = Constant<value = float {-inf}>()\n  scaled = Mul(product, c)\n  scores = Where(m, scaled, fill)\n";

void expect_failed(const Verification& result, const std::string& reason) {
  EXPECT_EQ(result.verdict, Verdict::kFailed) << result.reason;
  EXPECT_THAT(result.reason, HasSubstr(reason));
}

TEST(VerifierPreconditions, ScoresThatAWhereHides) {
  SiteFixture site(AttentionModel{.scores = kKeep, .inputs = ", bool[B,1,L,S] m"});
  site.add_term(ScoreTerm::Kind::kKeep, "m", -kInfinity);
  site.sdpa.k.views.push_back(site.view_of("k"));
  site.assume("rows-keep-a-key");
  expect_failed(site.verify(site.attention({"q", "k", "v", "m"})), "no number");
  site.assume("scores-finite");
  const Verification listed = site.verify(site.attention({"q", "k", "v", "m"}));
  EXPECT_EQ(listed.verdict, Verdict::kVerified) << listed.reason;
  EXPECT_THAT(listed.explained_by, Contains("scores-finite"));
}

TEST(VerifierPreconditions, RowsThatASubtractedBiasEmpties) {
  SiteFixture site(
      AttentionModel{.scores = "  scaled = Mul(product, c)\n  scores = Sub(scaled, m)\n", .inputs = ", float[B,1,L,S] m"});
  site.add_term(ScoreTerm::Kind::kBias, "m");
  site.sdpa.terms.back().coefficient = -1;
  const auto emission = [&] {
    return site.attention([&](GraphBuilder& build) {
      Value* negated = build.node("Neg", {site.value("m")});
      Value* lowest = build.scalar(std::numeric_limits<float>::lowest(), onnx::TensorProto::FLOAT);
      Value* next = build.scalar(kNextAboveLowest, onnx::TensorProto::FLOAT);
      return std::vector<Value*>{site.value("q"), site.value("k"), site.value("v"),
                                 build.node("Where", {build.node("Equal", {negated, lowest}), next, negated})};
    });
  };
  expect_failed(site.verify(emission()), "NaN or infinity on one side alone");
  site.assume("rows-keep-a-key");
  EXPECT_EQ(site.verify(emission()).verdict, Verdict::kVerified);
}

TEST(VerifierPreconditions, RowsThatTheInnerOfTwoTermsEmpties) {
  SiteFixture site(
      AttentionModel{.scores = "  fill = Constant<value = float {-3.4028234663852886e38}>()\n  scaled = Mul(product, c)\n"
                               "  biased = Add(scaled, m)\n  scores = Where(n, fill, biased)\n",
                     .inputs = ", float[B,1,L,S] m, bool[B,1,L,S] n"});
  site.add_term(ScoreTerm::Kind::kBias, "m");
  site.add_term(ScoreTerm::Kind::kDrop, "n", std::numeric_limits<float>::lowest());
  site.assume("scores-finite");
  const auto emission = [&] {
    return site.attention([&](GraphBuilder& build) {
      Value* fill = build.scalar(kNextAboveLowest, onnx::TensorProto::FLOAT);
      return std::vector<Value*>{site.value("q"), site.value("k"), site.value("v"),
                                 build.node("Where", {site.value("n"), fill, site.without_lowest(build, "m")})};
    });
  };
  expect_failed(site.verify(emission()), "one row empty");
  site.assume("rows-keep-a-key");
  EXPECT_EQ(site.verify(emission()).verdict, Verdict::kVerified);
}

/// An assumption on rows without a key says nothing of a fill that makes NaN a number.
TEST(VerifierPreconditions, EmptyRowsDoNotExplainAnotherFill) {
  SiteFixture site(AttentionModel{.scores = kKeep, .inputs = ", bool[B,1,L,S] m"});
  site.add_term(ScoreTerm::Kind::kKeep, "m", -1e4);
  site.assume("rows-keep-a-key");
  site.assume("scores-finite");
  expect_failed(site.verify(site.attention([&](GraphBuilder& build) {
    Value* zero = build.scalar(0, onnx::TensorProto::FLOAT);
    Value* deep = build.scalar(-1e4, onnx::TensorProto::FLOAT);
    return std::vector<Value*>{site.value("q"), site.value("k"), site.value("v"),
                               build.node("Where", {site.value("m"), zero, deep})};
  })),
                "NaN or infinity on one side alone");
}

/// Rows without a key as a refinement: NaN may become a number, a number may not become another.
TEST(VerifierPreconditions, ARefinementExplainsRowsThatWereNaNAlone) {
  const VerifyOptions nothing_assumed{.accepted = {.all = false}};
  SiteFixture emptied(
      AttentionModel{.scores = "  scaled = Mul(product, c)\n  scores = Add(scaled, m)\n", .inputs = ", float[B,1,L,S] m"});
  emptied.add_term(ScoreTerm::Kind::kBias, "m");
  emptied.sdpa.preconditions.push_back({"rows-keep-a-key", false, "", true});
  const Verification refined = emptied.verify(emptied.masked_attention(), nothing_assumed);
  EXPECT_EQ(refined.verdict, Verdict::kVerified) << refined.reason;
  EXPECT_THAT(refined.explained_by, ElementsAre("rows-keep-a-key"));
  expect_failed(emptied.verify(emptied.masked_attention(), {.accepted = {.all = false, .refinements = false}}),
                "rows-keep-a-key");

  SiteFixture filled(AttentionModel{
      .scores = "  fill = Constant<value = float {-1e4}>()\n  scaled = Mul(product, c)\n  scores = Where(m, scaled, fill)\n",
      .inputs = ", bool[B,1,L,S] m"});
  filled.add_term(ScoreTerm::Kind::kKeep, "m", -1e4);
  filled.assume("scores-finite");
  const auto added = [&] {
    return filled.attention([&](GraphBuilder& build) {
      Value* fills = build.node("Where", {filled.value("m"), build.scalar(0, onnx::TensorProto::FLOAT),
                                          build.scalar(-1e4, onnx::TensorProto::FLOAT)});
      return std::vector<Value*>{filled.value("q"), filled.value("k"), filled.value("v"), fills};
    });
  };
  filled.sdpa.preconditions.push_back({"rows-keep-a-key", false, "", true});
  expect_failed(filled.verify(added()), "differs by");
  filled.sdpa.preconditions.back().is_refinement = false;
  const Verification assumed = filled.verify(added());
  EXPECT_EQ(assumed.verdict, Verdict::kVerified) << assumed.reason;
}

/// What overflows between the scores and the result is no fault of what is written: it has the number that double has.
TEST(VerifierPreconditions, NaNOfAnOverflowOnTheWayBecomesTheExactResult) {
  const auto model = [](const std::string& mean) {
    return AttentionModel{.scores = "  scaled = Mul(product, c)\n  biased = Add(scaled, m)\n  scores = " + mean + "\n",
                          .inputs = ", float[B,1,L,S] m"};
  };
  SiteFixture site(model("Mean(biased, biased)"));
  site.add_term(ScoreTerm::Kind::kBias, "m");
  site.sdpa.preconditions.push_back({"rows-keep-a-key", false, "", true});
  const VerifyOptions nothing_assumed{.accepted = {.all = false}};
  const Verification refined = site.verify(site.masked_attention(), nothing_assumed);
  EXPECT_EQ(refined.verdict, Verdict::kVerified) << refined.reason;
  EXPECT_THAT(refined.explained_by, Contains("scores-finite"));
  ASSERT_EQ(refined.found.size(), 1);
  EXPECT_EQ(refined.found[0].id, "scores-finite");
  EXPECT_TRUE(refined.found[0].is_refinement && !refined.found[0].proven);
  site.assume("scores-finite");
  EXPECT_TRUE(site.verify(site.masked_attention()).found.empty()) << "it is listed";

  SiteFixture plain(model("Identity(biased)"));
  plain.add_term(ScoreTerm::Kind::kBias, "m");
  plain.sdpa.preconditions.push_back({"rows-keep-a-key", false, "", true});
  EXPECT_TRUE(plain.verify(plain.masked_attention(), nothing_assumed).found.empty()) << "nothing overflows";
}

constexpr char kClamp[] =
    "  least = Constant<value = float {-30}>()\n  most = Constant<value = float {30}>()\n  scaled = Mul(product, c)\n"
    "  scores = Clip(scaled, least, most)\n";

TEST(VerifierPreconditions, ScoresBeyondAClamp) {
  SiteFixture site(AttentionModel{.scores = kClamp});
  site.sdpa.clamp = 30;
  expect_failed(site.verify(site.attention({"q", "kh", "vh"})), "large scores");
  site.assume("scores-within-clamp");
  const Verification listed = site.verify(site.attention({"q", "kh", "vh"}));
  EXPECT_EQ(listed.verdict, Verdict::kVerified) << listed.reason;
  EXPECT_THAT(listed.explained_by, ElementsAre("scores-within-clamp"));
}

TEST(VerifierPreconditions, WideClampExplainsNoOtherScale) {
  SiteFixture site(AttentionModel{.scores = "  scores = Mul(product, c)\n"});
  site.sdpa.clamp = 50000;
  site.assume("scores-within-clamp");
  site.scale *= 1.01;
  expect_failed(site.verify(site.attention({"q", "kh", "vh"})), "differs by");
}

TEST(VerifierPreconditions, KeysThatAreMaskedBelowAClamp) {
  SiteFixture site(AttentionModel{.scores = "  least = Constant<value = float {-1000}>()\n  scaled = Mul(product, c)\n"
                                            "  masked = Add(scaled, m)\n  scores = Max(masked, least)\n",
                                  .inputs = ", float[B,1,L,S] m"});
  site.add_term(ScoreTerm::Kind::kBias, "m");
  site.sdpa.clamp = 1000;
  site.assume("scores-within-clamp");
  expect_failed(site.verify(site.masked_attention()), "one row empty");
  site.assume("rows-keep-a-key");
  const Verification listed = site.verify(site.masked_attention());
  EXPECT_EQ(listed.verdict, Verdict::kVerified) << listed.reason;
}

/// Exponentials that leave their range are NaN or are lost before, and not behind a softmax.
TEST(VerifierPreconditions, ExponentialsBeyondTheirRangeExplainNoNewNaN) {
  SiteFixture site(
      AttentionModel{.scores = "  scaled = Mul(product, c)\n  scores = Add(scaled, m)\n", .inputs = ", float[B,1,L,S] m"});
  site.add_term(ScoreTerm::Kind::kBias, "m");
  site.sdpa.exponent_offset = 0;
  site.assume("exp-in-range");
  site.assume("rows-keep-a-key");
  EXPECT_EQ(site.verify(site.masked_attention()).verdict, Verdict::kVerified);
  const auto overflowing = site.attention([&](GraphBuilder& build) {
    Value* mask = site.without_lowest(build, "m");
    Value* large = build.node("Mul", {build.node("Relu", {mask}), build.scalar(1e36, onnx::TensorProto::FLOAT)});
    Value* nothing = build.node("Sub", {large, large});
    return std::vector<Value*>{site.value("q"), site.value("k"), site.value("v"), build.node("Add", {mask, nothing})};
  });
  expect_failed(site.verify(overflowing), "NaN or infinity on one side alone");
}

/// The mask's own length is past + new keys, which nothing says: sizes are found under which the model runs.
TEST(VerifierPreconditions, MaskDroppedWhoseLengthIsASumOfSizes) {
  AttentionModel model;
  model.inputs = ", float[B,4,P,8] pk, float[B,4,P,8] pv, float[T] padding";
  model.heads = "  kh = Concat<axis = 2>(pk, k)\n  vh = Concat<axis = 2>(pv, v)\n";
  model.scores =
      "  scaled = Mul(product, c)\n  zero = Constant<value = int64 {0}>()\n  one = Constant<value = int64 {1}>()\n"
      "  first = Constant<value_ints = [0]>()\n  ts = Shape<start = 2, end = 3>(kh)\n  t = Squeeze(ts, first)\n"
      "  keys = Range(zero, t, one)\n  m = Gather(padding, keys)\n  scores = Add(scaled, m)\n";
  SiteFixture site(model);
  expect_failed(site.verify(site.attention({"q", "kh", "vh"})), "differs by");
}

}  // namespace
}  // namespace attn_opt
