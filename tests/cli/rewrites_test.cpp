// The command's options for rewrites.
#include <nlohmann/json.hpp>

#include "tests/cli/tool.h"

namespace attn_opt {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class RewriteOptions : public ToolTest {
 protected:
  void SetUp() override {
    ToolTest::SetUp();
    std::filesystem::copy_file(ATTN_OPT_TESTDATA "/cases/rewrites/gelu.onnxtxt", file("gelu.onnxtxt"));
    std::filesystem::copy_file(ATTN_OPT_TESTDATA "/cases/rewrites/rule_careless.onnxtxt", file("wrong.onnxtxt"));
  }
  nlohmann::json rewrites(const std::string& words) {
    const ToolResult result = run(words + " --report report.json");
    EXPECT_EQ(result.status, 0) << result.err;
    return nlohmann::json::parse(read_file(file("report.json"))).at("rewrites");
  }
  const std::string kRules = std::string(" --rules ") + ATTN_OPT_TESTDATA "/cases/rewrites/relu";
};

TEST_F(RewriteOptions, AlsoOnlyAndDisable) {
  EXPECT_EQ(rewrites("gelu.onnxtxt").size(), 0U);
  EXPECT_EQ(rewrites("gelu.onnxtxt --also gelu").size(), 1U);
  EXPECT_EQ(rewrites("gelu.onnxtxt --also rms-norm,gelu").size(), 1U);
  EXPECT_EQ(rewrites("gelu.onnxtxt --also all").size(), 1U);
  EXPECT_EQ(rewrites("gelu.onnxtxt --only gelu").size(), 1U);
  EXPECT_EQ(rewrites("gelu.onnxtxt --also all --disable gelu").size(), 0U);
  EXPECT_EQ(rewrites("gelu.onnxtxt --also all --priority gelu=200").size(), 1U);
}

TEST_F(RewriteOptions, NamesThatThereAreNot) {
  EXPECT_THAT(run("gelu.onnxtxt --also gulu").err, HasSubstr("did you mean 'gelu'"));
  EXPECT_EQ(run("gelu.onnxtxt --also gulu").status, 2);
  EXPECT_EQ(run("gelu.onnxtxt --priority gelu").status, 2);
  EXPECT_EQ(run("gelu.onnxtxt --priority gelu=high").status, 2);
  EXPECT_EQ(run("gelu.onnxtxt --priority gulu=1").status, 2);
}

TEST_F(RewriteOptions, GatesOfAttentionDoNotAskForThem) {
  EXPECT_EQ(run("gelu.onnxtxt --also gelu --require-fused 1").status, 1);
  EXPECT_EQ(run("gelu.onnxtxt --also gelu --require-fused all --allow-none").status, 0);
  EXPECT_EQ(run("gelu.onnxtxt --also gelu --check").status, 1);
  EXPECT_EQ(run("gelu.onnxtxt --check").status, 0);
  EXPECT_EQ(run("wrong.onnxtxt" + kRules + " --on-mismatch fail").status, 4);
  EXPECT_EQ(run("wrong.onnxtxt" + kRules).status, 0);
}

TEST_F(RewriteOptions, AFileOfRulesIsAnsweredWithItsFolder) {
  write_file(file("one.rule"), "x");
  const ToolResult result = run("explain wrong.onnxtxt --rules one.rule");
  EXPECT_EQ(result.status, 3);
  EXPECT_THAT(result.err, HasSubstr("one.rule: is a file; --rules takes folders; give the folder that it lies in"));
}

TEST_F(RewriteOptions, OfOperandsTriedBothWaysTheFurtherOneIsReported) {
  std::filesystem::copy_file(ATTN_OPT_TESTDATA "/cases/rewrites/rule_other_constant.onnxtxt", file("other.onnxtxt"));
  const std::string rules = ATTN_OPT_TESTDATA "/cases/rewrites/hard_swish";
  EXPECT_THAT(run("explain other.onnxtxt --disable gate_by_six --rules " + rules).out,
              HasSubstr("'fifth' is not the constant 'sixth'"));
}

TEST_F(RewriteOptions, WhatWasCalledPatternsIsTakenAndNotListed) {
  const nlohmann::json one = rewrites("wrong.onnxtxt --patterns " ATTN_OPT_TESTDATA "/cases/rewrites/relu");
  EXPECT_EQ(one.at(0).at("outcome"), "refused");
  const std::string help = run("--help").out;
  EXPECT_THAT(help, HasSubstr("--rules DIR"));
  EXPECT_THAT(help, Not(HasSubstr("--patterns")));
  EXPECT_THAT(run("completion bash").out, Not(HasSubstr("--patterns")));
  EXPECT_THAT(run("patterns" + kRules).out, HasSubstr("negated_relu"));
}

TEST_F(RewriteOptions, ExplainedAndTraced) {
  EXPECT_THAT(run("explain gelu.onnxtxt --also gelu").out, HasSubstr("y  rewritten  [gelu]"));
  const std::string traced = run("wrong.onnxtxt -vv --also gelu,rms-norm" + kRules).err;
  EXPECT_THAT(traced, HasSubstr("y (Relu): [negated_relu] no-match: 'n' is Sin, not Neg\n"));
  EXPECT_THAT(run("wrong.onnxtxt -v" + kRules).err, Not(HasSubstr("[negated_relu]")));
  EXPECT_THAT(run("wrong.onnxtxt -v" + kRules).out, HasSubstr("refused    y\n           careless_relu: verification.failed"));
}

TEST_F(RewriteOptions, ExplainEndsWithWhatBecameOfThem) {
  const std::string told = run("explain wrong.onnxtxt" + kRules).out;
  EXPECT_THAT(told, HasSubstr("y  refused  [careless_relu]"));
  EXPECT_THAT(told, Not(HasSubstr("no attention found")));
}

TEST_F(RewriteOptions, ExplainTakesTheirNodesAndThoseTheyReplace) {
  for (const std::string node : {"y", "main/y", "n"})
    EXPECT_THAT(run("explain wrong.onnxtxt --node " + node + kRules).out, HasSubstr("y  refused  [careless_relu]")) << node;
  const ToolResult wrong = run("explain wrong.onnxtxt --node z" + kRules);
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("no attention and no place of a rewrite is called 'z'; did you mean 'y'?"));
  write_file(file("two.onnxtxt"), std::string("<ir_version: 8, opset_import: [\"\" : 18]>\n") +
                                      "g (float[4] x) => (float[4] y, float[4] z) { a = Neg (x) y = Relu (a) b = Sin (x) "
                                      "z = Relu (b) }\n");
  EXPECT_THAT(run("explain two.onnxtxt --node y" + kRules).out,
              testing::AllOf(HasSubstr("y  rewritten  [negated_relu]"), Not(HasSubstr("careless"))));
}

TEST_F(RewriteOptions, CaseOutOfWhatIsRefusedAndOfWhatIsApplied) {
  write_file(file("in.onnxtxt"), std::string("<ir_version: 8, opset_import: [\"\" : 18]>\n") +
                                     "secret (float[secret_batch,8] x) => (float[secret_batch,8] y, float[secret_batch,8] z) {"
                                     " h = Tanh (x) a = Neg (h) y = Relu (a) b = Sin (h) c = Relu (b) z = Exp (c) }\n");
  const auto written = [&](const std::string& words) {
    const ToolResult result = run("explain in.onnxtxt --case-out out.onnxtxt" + words + kRules);
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(run("test out.onnxtxt").status, 0) << read_file(file("out.onnxtxt"));
    return read_file(file("out.onnxtxt"));
  };
  const std::string refused = written("");
  EXPECT_THAT(refused, HasSubstr("# EXPECT fused=0 refused=0 missed=0 rewritten=0 miss=verification.failed verdict=failed\n"));
  EXPECT_THAT(refused,
              testing::AllOf(HasSubstr("Sin"), Not(HasSubstr("Tanh")), Not(HasSubstr("Neg")), Not(HasSubstr("secret"))));
  EXPECT_THAT(written(" --node y"),
              testing::AllOf(HasSubstr("rewritten=1 verdict=verified\n"), HasSubstr("Neg"), Not(HasSubstr("Sin"))));
  const ToolResult rule = run("explain in.onnxtxt --rule-out out.rule" + kRules);
  EXPECT_EQ(rule.status, 3);
  EXPECT_THAT(rule.err, HasSubstr("--rule-out: no attention found"));
}

TEST_F(RewriteOptions, WhatIsNotAppliedIsInTheShortReport) {
  EXPECT_THAT(run("wrong.onnxtxt" + kRules).out,
              HasSubstr("\nrefused    y\n           careless_relu: verification.failed at y (Relu): y differs by "));
}

TEST_F(RewriteOptions, PatternsOfAttentionHaveAPriorityToo) {
  EXPECT_EQ(run("gelu.onnxtxt --priority softmax_attention=200").status, 0);
  EXPECT_THAT(run("gelu.onnxtxt --priority softmax_atention=200").err, HasSubstr("did you mean 'softmax_attention'?"));
}

}  // namespace
}  // namespace attn_opt
