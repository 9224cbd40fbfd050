// What the reference takes and other runtimes do not, or take otherwise, is refused though the numbers agree.
#include <gmock/gmock.h>

#include "tests/verify/site_fixture.h"

namespace attn_opt {
namespace {

using testing::HasSubstr;

constexpr char kAddBias[] = "  scaled = Mul(product, c)\n  scores = Add(scaled, m)\n";

void expect_unportable(const Verification& result, const std::string& what) {
  EXPECT_EQ(result.verdict, Verdict::kFailed) << result.reason;
  EXPECT_THAT(result.reason, HasSubstr("the node is given " + what));
}

SiteFixture site_with_bias(const std::string& input) {
  SiteFixture site(AttentionModel{.scores = kAddBias, .inputs = input});
  site.add_term(ScoreTerm::Kind::kBias, "m");
  site.assume("rows-keep-a-key");
  return site;
}

TEST(VerifierPortable, LowestInTheMask) {
  SiteFixture site = site_with_bias(", float[B,1,L,S] m");
  expect_unportable(site.verify(site.attention({"q", "k", "v", "m"})), "a mask that holds the lowest number");
  EXPECT_EQ(site.verify(site.masked_attention()).verdict, Verdict::kVerified);
}

TEST(VerifierPortable, MaskOfOneRow) {
  SiteFixture site = site_with_bias(", float[B,1,1,S] m");
  expect_unportable(site.verify(site.masked_attention()), "a mask of shape");
}

TEST(VerifierPortable, ValuesOfAnotherRank) {
  AttentionModel model;
  model.heads = "  kh = Identity(k)\n  to = Constant<value_ints = [0, 4, -1, 8]>()\n  vh = Reshape(v3, to)\n";
  model.inputs = ", float[B,4,S,8] v3";
  SiteFixture site(model);
  const auto emission = site.attention([&](GraphBuilder& build) {
    Value* one = build.ints({0});
    Value* outer = build.node("Unsqueeze", {site.value("v3"), one});
    return std::vector<Value*>{site.value("q"), site.value("k"), outer};
  });
  EXPECT_EQ(site.verify(emission).verdict, Verdict::kFailed);
}

TEST(VerifierPortable, PastsOfTwoLengths) {
  AttentionModel model;
  model.heads = "  kh = Concat<axis = 2>(pk, k)\n  vh = Concat<axis = 2>(v, pv)\n";
  model.inputs = ", float[B,4,P,8] pk, float[B,4,P,8] pv";
  SiteFixture site(model);
  expect_unportable(site.verify(site.attention({"q", "k", "pv", "", "pk", "v"})), "a past of");
}

TEST(VerifierPortable, KeysOfOneFeature) {
  AttentionModel model;
  std::string text = model.text();
  text.replace(text.find("[B,4,S,8] k"), 11, "[B,4,S,1] k");
  const std::string product = "product = MatMul(q, kt)";
  text.replace(text.find(product), product.size(), "product = Einsum<equation = \"bhqd,bhdk->bhqk\">(q, kt)");
  SiteFixture site(text);
  site.sdpa = site.plain_sdpa();
  expect_unportable(site.verify(site.attention({"q", "k", "v"})), "features of keys");
}

TEST(VerifierPortable, KeysOfOneBatch) {
  AttentionModel model;
  std::string text = model.text();
  text.replace(text.find("[B,4,S,8] k"), 11, "[1,4,S,8] k");
  SiteFixture site(text);
  site.sdpa = site.plain_sdpa();
  expect_unportable(site.verify(site.attention({"q", "k", "v"})), "a batch of K or V");
}

}  // namespace
}  // namespace attn_opt
