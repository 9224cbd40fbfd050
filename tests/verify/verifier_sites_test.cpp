// Where a site lies: in a branch, behind what an earlier edit made, in large static shapes.
#include <gmock/gmock.h>

#include "tests/verify/site_fixture.h"

namespace attn_opt {
namespace {

TEST(VerifierSites, MaskMadeByAnEarlierEdit) {
  AttentionModel model;
  model.inputs = ", float[B,1,1,S] m";
  model.scores = "  scaled = Mul(product, c)\n  scores = Add(scaled, m)\n";
  std::string text = model.text();
  text.replace(text.find(" y)\n"), 4, " y, float[B,4,L,8] z)\n");
  text.replace(text.rfind("}"), 1,
               "  product2 = MatMul(y, kt)\n  scaled2 = Mul(product2, c)\n  scores2 = Add(scaled2, m)\n"
               "  p2 = Softmax<axis = -1>(scores2)\n  z = MatMul(p2, vh)\n}");
  SiteFixture site(text);
  Verifier verifier(site.context(), inline_tensors(), {});
  auto rewrite = [&](const std::string& query, const std::string& output) {
    site.sdpa = site.plain_sdpa();
    site.sdpa.q.views = {site.view_of(query)};
    site.sdpa.outputs = {{site.value(output), site.view_of(output).axes}};
    site.add_term(ScoreTerm::Kind::kBias, "m");
    site.assume("rows-keep-a-key");
    return site.attention(
        [&](GraphBuilder& build) {
          Value* one = build.ints({1});
          Value* target = build.node("Concat", {one, one, build.shape(*site.value("q"), 2, 3), one},
                                     {GraphBuilder::attribute("axis", int64_t{0})});
          return std::vector<Value*>{site.value(query), site.value("k"), site.value("v"),
                                     build.node("Expand", {site.without_lowest(build, "m"), target})};
        },
        {}, {output});
  };
  Emission first = rewrite("q", "y");
  EXPECT_EQ(verifier.verify(first, site.sdpa).verdict, Verdict::kVerified);
  first.edit.commit(site.shared);
  const Emission second = rewrite("y", "z");
  EXPECT_EQ(second.edit.nodes().size(), 1u) << "the expanded mask is shared";
  const Verification result = verifier.verify(second, site.sdpa);
  EXPECT_EQ(result.verdict, Verdict::kVerified) << result.reason;
}

constexpr char kInBranch[] = R"(<ir_version: 10, opset_import: ["" : 18]>
m (bool which, float[B,4,L,8] q, float[B,4,S,8] k, float[B,4,S,8] v) => (float[B,4,L,8] out)
{
  c = Constant<value = float {0.35355338454246521}>()
  out = If (which) <
    then_branch = attend () => (float[B,4,L,8] y) {
      kt = Transpose<perm = [0, 1, 3, 2]>(k)
      product = MatMul(q, kt)
      scores = Mul(product, c)
      p = Softmax<axis = -1>(scores)
      y = MatMul(p, v)
    },
    else_branch = pass () => (float[B,4,L,8] y2) { y2 = Identity(q) }
  >
})";

TEST(VerifierSites, InABranch) {
  SiteFixture site(kInBranch);
  Graph* branch = site.value("out")->producer->bodies[0];
  Value* y = branch->find("y");
  site.sdpa.q.views = {site.view_of("q")};
  site.sdpa.k.views = {site.view_of("k")};
  site.sdpa.v.views = {site.view_of("v")};
  site.sdpa.outputs = {{y, site.view_of("q").axes}};
  site.sdpa.scale = site.scale;
  site.sdpa.type = onnx::TensorProto::FLOAT;
  auto rewrite = [&](float factor) {
    Emission emission{Edit(site.view(), *y->producer), "4d", 1, false, nullptr, site.scale * factor, {}, {}, {}};
    GraphBuilder build(emission.edit, site.shared, "site");
    emission.attention = build.new_node("Attention", {site.value("q"), site.value("k"), site.value("v")}, {true},
                                        {GraphBuilder::attribute("scale", static_cast<float>(site.scale * factor))});
    emission.edit.take_over(*y, *emission.attention->outputs[0]);
    return emission;
  };
  const Verification result = site.verify(rewrite(1));
  EXPECT_EQ(result.verdict, Verdict::kVerified) << result.reason;
  EXPECT_EQ(site.verify(rewrite(1.01f)).verdict, Verdict::kFailed);
}

TEST(VerifierSites, BranchAboveTheScores) {
  AttentionModel model;
  model.inputs = ", bool which, float[B,1,L,S] m";
  model.scores =
      "  scaled = Mul(product, c)\n"
      "  bias = If (which) <then_branch = a () => (t) { t = Neg(m) }, else_branch = b () => (e) { e = Abs(m) }>\n"
      "  scores = Add(scaled, bias)\n";
  SiteFixture site(model);
  const auto emission = site.attention([&](GraphBuilder& build) {
    Value* bias =
        build.node("Where", {site.value("which"), build.node("Neg", {site.value("m")}), build.node("Abs", {site.value("m")})});
    return std::vector<Value*>{site.value("q"), site.value("k"), site.value("v"), bias};
  });
  const Verification result = site.verify(emission);
  EXPECT_EQ(result.verdict, Verdict::kVerified) << result.reason;
}

TEST(VerifierSites, LargeStaticSequencesAreShrunk) {
  SiteFixture site(with_lengths(AttentionModel{}.text(), "30000"));
  site.sdpa = site.plain_sdpa();
  const Verification result = site.verify(site.attention({"q", "k", "v"}));
  EXPECT_EQ(result.verdict, Verdict::kVerified) << result.reason;
  EXPECT_LT(result.seconds, 1);
}

/// Q, K and V are inputs of the graph, and no size is a symbol.
TEST(VerifierSites, WhatNeedsNoRunOfItsOwnSizesGetsNone) {
  std::string text = with_lengths(AttentionModel().text(), "4608");
  for (size_t at; (at = text.find("[B,")) != std::string::npos;) text.replace(at, 3, "[1,");
  SiteFixture site(text);
  site.sdpa = site.plain_sdpa();
  VerifyOptions options;
  options.memory_limit = 8'000'000;
  const Verification result = site.verify(site.attention({"q", "kh", "vh"}), options);
  EXPECT_EQ(result.verdict, Verdict::kVerified) << result.reason;
  site.scale *= 1.01;
  EXPECT_EQ(site.verify(site.attention({"q", "kh", "vh"}), options).verdict, Verdict::kFailed);
}

/// Attention over 512 queries and keys, which a list of sizes holds and a constant mask has.
std::string with_lengths_in_constants() {
  AttentionModel model;
  model.heads =
      "  sizes = Constant<value = int64[4] {0, 0, 512, 8}>()\n  kh = Reshape(k, sizes)\n  vh = Identity(v)\n"
      "  square = Constant<value = int64[2] {512, 512}>()\n  ones = ConstantOfShape<value = float[1] {-3}>(square)\n"
      "  m = Trilu<upper = 1>(ones)\n";
  model.scores = "  scaled = Mul(product, c)\n  scores = Add(scaled, m)\n";
  return with_lengths(model.text(), "512");
}

/// Too little for 512 times 512 scores.
VerifyOptions little_memory() {
  VerifyOptions options;
  options.memory_limit = 8'000'000;
  return options;
}

Verification verified_with_little_memory(const std::vector<std::string>& inputs) {
  SiteFixture site(with_lengths_in_constants());
  site.sdpa = site.plain_sdpa();
  site.add_term(ScoreTerm::Kind::kBias, "m");
  return site.verify(site.attention(inputs), little_memory());
}

TEST(VerifierSites, LargeLengthsInConstantsAreShrunk) {
  const Verification result = verified_with_little_memory({"q", "kh", "v", "m"});
  EXPECT_EQ(result.verdict, Verdict::kVerified) << result.reason;
}

TEST(VerifierSites, WrongOperandsOfLargeLengthsAreSeen) {
  for (const std::vector<std::string>& inputs :
       {std::vector<std::string>{"q", "v", "v", "m"}, {"q", "kh", "v"}, {"k", "q", "v", "m"}}) {
    const Verification result = verified_with_little_memory(inputs);
    EXPECT_EQ(result.verdict, Verdict::kFailed) << result.reason;
  }
}

TEST(VerifierSites, ReadsAValueAboveAnotherThatIsRead) {
  AttentionModel model;
  model.heads = "  double32 = Constant<value = float {2}>()\n  kh = Mul(k, double32)\n  vh = Identity(v)\n";
  SiteFixture site(model);
  const auto emission = site.attention([&](GraphBuilder& build) {
    Value* twice = build.node("Add", {site.value("k"), site.value("k")});
    Value* zero = build.node("Sub", {site.value("kh"), twice});
    return std::vector<Value*>{site.value("q"), build.node("Add", {twice, zero}), site.value("v")};
  });
  const Verification result = site.verify(emission);
  EXPECT_EQ(result.verdict, Verdict::kVerified) << result.reason;
}

}  // namespace
}  // namespace attn_opt
