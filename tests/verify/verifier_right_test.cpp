// Right rewrites are verified.
#include <gmock/gmock.h>

#include "tests/verify/site_fixture.h"

namespace attn_opt {
namespace {

using testing::ElementsAre;
using testing::Lt;

void expect_verified(const Verification& result, int at_least_draws = 2) {
  EXPECT_EQ(result.verdict, Verdict::kVerified) << result.reason;
  EXPECT_GE(result.draws, at_least_draws);
  EXPECT_THAT(result.algebra_difference, Lt(1e-12));
  EXPECT_THAT(result.type_difference_ulp, Lt(2));
}

TEST(VerifierRight, Plain) {
  SiteFixture site(AttentionModel{});
  expect_verified(site.verify(site.attention({"q", "k", "v"})), 4);
}

TEST(VerifierRight, DoubleModel) {
  AttentionModel model;
  model.type = "double";
  SiteFixture site(model);
  const double scale = site.scale;
  auto attention_of_scaled = [&](GraphBuilder& build) {
    Value* scaled = build.node("Mul", {site.value("q"), build.scalar(scale, onnx::TensorProto::DOUBLE)});
    return std::vector<Value*>{scaled, site.value("k"), site.value("v")};
  };
  site.scale = 1;
  expect_verified(site.verify(site.attention(attention_of_scaled)));
}

TEST(VerifierRight, HalfModel) {
  AttentionModel model;
  model.type = "float16";
  SiteFixture site(model);
  site.scale = 0.353515625;  // as the model rounds it
  expect_verified(site.verify(site.attention({"q", "k", "v"})));
}

constexpr char kBiasInput[] = ", float[B,1,L,S] m";
constexpr char kAddBias[] = "  scaled = Mul(product, c)\n  scores = Add(scaled, m)\n";

TEST(VerifierRight, BiasThatMayEmptyARowIsExplained) {
  AttentionModel model{.scores = kAddBias, .inputs = kBiasInput};
  SiteFixture site(model);
  site.add_term(ScoreTerm::Kind::kBias, "m");
  site.assume("rows-keep-a-key");
  const auto emission = site.masked_attention();
  const Verification result = site.verify(emission);
  expect_verified(result, 8);
  EXPECT_THAT(result.explained_by, ElementsAre("rows-keep-a-key"));

  const Verification strict = site.verify(emission, {.accepted = {.all = false, .refinements = false}});
  EXPECT_EQ(strict.verdict, Verdict::kFailed);
  EXPECT_THAT(strict.reason, testing::HasSubstr("rows-keep-a-key"));
}

TEST(VerifierRight, GuardedRowsNeedNoKey) {
  AttentionModel model{.scores = kAddBias, .inputs = kBiasInput};
  model.weights =
      "  raw = Softmax<axis = -1>(scores)\n  lost = IsNaN(raw)\n  z32 = Constant<value = float {0}>()\n"
      "  p = Where(lost, z32, raw)\n";
  SiteFixture site(model);
  site.add_term(ScoreTerm::Kind::kBias, "m");
  site.assume("scores-finite");
  const Verification result = site.verify(site.masked_attention());
  expect_verified(result, 8);
  EXPECT_THAT(result.explained_by, ElementsAre("scores-finite"));
}

TEST(VerifierRight, ShieldedLowestMask) {
  AttentionModel model{.scores = kAddBias, .inputs = kBiasInput};
  SiteFixture site(model);
  site.add_term(ScoreTerm::Kind::kBias, "m");
  site.assume("rows-keep-a-key");
  const auto emission = site.masked_attention();
  expect_verified(site.verify(emission), 8);
}

constexpr char kRepeat[] =
    "  axes = Constant<value_ints = [2]>()\n  k5 = Unsqueeze(k, axes)\n  v5 = Unsqueeze(v, axes)\n"
    "  ks = Shape(k)\n  one = Constant<value_ints = [1]>()\n  two = Constant<value_ints = [2]>()\n"
    "  four = Constant<value_ints = [4]>()\n  outer = Slice(ks, zero, two)\n  inner = Slice(ks, two, four)\n"
    "  wide = Concat<axis = 0>(outer, two, inner)\n  flat = Constant<value_ints = [0, -1, 0, 0]>()\n"
    "  k6 = Expand(k5, wide)\n  v6 = Expand(v5, wide)\n  b = Slice(ks, zero, one)\n"
    "  merged = Concat<axis = 0>(b, four, inner)\n  kh = Reshape(k6, merged)\n  vh = Reshape(v6, merged)\n";

std::string repeat_heads() { return std::string("  zero = Constant<value_ints = [0]>()\n") + kRepeat; }

TEST(VerifierRight, GroupedHeads) {
  AttentionModel model{.heads = repeat_heads(), .kv_heads = 2};
  SiteFixture site(model);
  Emission emission = site.attention({"q", "k", "v"});
  EXPECT_EQ(site.verify(emission).verdict, Verdict::kFailed) << "the 4-D form does not tell all of portable's runtimes";
  emission.target = &rules_of(Target::kOrt);
  expect_verified(site.verify(emission));
}

TEST(VerifierRight, CacheWithPresents) {
  AttentionModel model;
  model.inputs = ", float[B,4,P,8] pk, float[B,4,P,8] pv";
  model.heads = "  kh = Concat<axis = 2>(pk, k)\n  vh = Concat<axis = 2>(pv, v)\n";
  model.outputs = ", float[B,4,T,8] kh, float[B,4,T,8] vh";
  SiteFixture site(model);
  OperandView k = site.view_of("k"), v = site.view_of("v");
  k.past = site.value("pk");
  v.past = site.value("pv");
  k.present = site.value("kh");
  v.present = site.value("vh");
  site.sdpa.k.views.push_back(k);
  site.sdpa.v.views.push_back(v);
  const auto emission = site.attention({"q", "k", "v", "", "pk", "pv"}, {}, {"y", "kh", "vh"});
  expect_verified(site.verify(emission));
}

TEST(VerifierRight, CausalMaskMadeOfShapes) {
  AttentionModel model;
  model.scores =
      "  ls = Shape<start = 2, end = 3>(q)\n  ss = Shape<start = 2, end = 3>(k)\n  ext = Concat<axis = 0>(ls, ss)\n"
      "  yes = ConstantOfShape<value = bool[1] {1}>(ext)\n"
      "  ones = Cast<to = 1>(yes)\n  low = Trilu<upper = 0>(ones)\n  keep = Cast<to = 9>(low)\n"
      "  inf = Constant<value = float {-inf}>()\n  scaled = Mul(product, c)\n  scores = Where(keep, scaled, inf)\n";
  SiteFixture site(model);
  site.sdpa.is_causal = true;
  expect_verified(site.verify(site.attention({"q", "k", "v"}, {GraphBuilder::attribute("is_causal", int64_t{1})})));
}

TEST(VerifierRight, TheSameTwice) {
  AttentionModel model{.scores = kAddBias, .inputs = kBiasInput};
  SiteFixture site(model);
  site.add_term(ScoreTerm::Kind::kBias, "m");
  site.assume("rows-keep-a-key");
  const auto emission = site.masked_attention();
  const Verification one = site.verify(emission), other = site.verify(emission);
  EXPECT_EQ(one.algebra_difference, other.algebra_difference);
  EXPECT_EQ(one.type_difference_ulp, other.type_difference_ulp);
  EXPECT_EQ(one.draws, other.draws);
  EXPECT_FALSE(other.shared);
}

TEST(VerifierRight, EqualSitesShareTheVerdict) {
  SiteFixture site(AttentionModel{});
  Verifier verifier(site.context(), inline_tensors(), {});
  const Verification one = verifier.verify(site.attention({"q", "k", "v"}), site.sdpa);
  const Verification other = verifier.verify(site.attention({"q", "k", "v"}), site.sdpa);
  EXPECT_FALSE(one.shared);
  EXPECT_TRUE(other.shared);
  EXPECT_EQ(other.seconds, 0);
  EXPECT_EQ(one.algebra_difference, other.algebra_difference);
}

}  // namespace
}  // namespace attn_opt
