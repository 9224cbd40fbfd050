// Sites that are written as skeletons of rules: explain --rule-out.
#include "src/cli/cases/case_file.h"
#include "tests/cli/tool.h"

namespace attn_opt {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Attention of SIZES whose scores go through SCORES, from `product` to `scores`, with more INPUTS.
std::string model_with(const std::string& scores, const std::string& inputs = "", const std::string& sizes = "2,2") {
  const bool has_heads = sizes.find(',') != std::string::npos;
  return "<ir_version: 8, opset_import: [\"\" : 18]>\n"
         "secret_graph (float[" +
         sizes + ",secret_l,8] secret_q, float[" + sizes + ",secret_s,8] secret_k, float[" + sizes + ",secret_s,8] secret_v" +
         inputs + ") => (float[" + sizes +
         ",secret_l,8] secret_y)\n"
         "<float scale = {0.35355338}, float fill = {-inf}> {\n"
         "  secret_q2 = Tanh (secret_q)\n"
         "  kt = Transpose <perm = [" +
         (has_heads ? "0, 1, 3, 2" : "0, 2, 1") +
         "]> (secret_k)\n"
         "  product = MatMul (secret_q2, kt)\n" +
         scores +
         "\n  [secret_softmax] p = Softmax <axis = -1> (scores)\n"
         "  secret_y = MatMul (p, secret_v)\n"
         "}\n";
}

class RuleOutTest : public ToolTest {
 protected:
  /// The rule of the first site of MODEL that is missed, or of the first.
  std::string rule_of(const std::string& model) {
    write_file(file("in.onnxtxt"), model);
    std::filesystem::create_directories(file("rules"));
    const ToolResult result = run("explain in.onnxtxt --rule-out rules/mine.rule");
    EXPECT_EQ(result.status, 0) << result.err;
    return read_file(file("rules/mine.rule"));
  }
  /// What attn-opt says of the model with that rule alone.
  std::string with_rule() { return run("explain in.onnxtxt --rules rules --only mine").out; }
};

TEST_F(RuleOutTest, SaysNothingOfTheUser) {
  const std::string text = rule_of(model_with("  scores = Mul (product, scale)"));
  EXPECT_THAT(text, AllOf(HasSubstr("# RULE    mine\n"), HasSubstr("# WHERE   q: [B, H, L, D]\n"),
                          HasSubstr("# WHERE   v: [B, H, S, E]\n"), Not(HasSubstr("secret")), Not(HasSubstr("Tanh"))));
  EXPECT_THAT(text, Not(HasSubstr("says nothing of"))) << text;
}

TEST_F(RuleOutTest, ScalesAndMasksAreRead) {
  const std::string bias = ", float[2,1,secret_l,secret_s] secret_mask";
  const std::string kept = ", bool[2,1,secret_l,secret_s] secret_mask";
  const std::pair<std::string, std::string> models[] = {
      {"  scores = Mul (product, scale)", ""},
      {"  scores = Div (product, scale)", ""},
      {"  scaled = Mul (product, scale)\n  scores = Add (scaled, secret_mask)", bias},
      {"  scaled = Mul (scale, product)\n  scores = Add (secret_mask, scaled)", bias},
      {"  scaled = Mul (product, scale)\n  scores = Where (secret_mask, scaled, fill)", kept},
      {"  scaled = Mul (product, scale)\n  scores = Where (secret_mask, fill, scaled)", kept}};
  for (const auto& [scores, inputs] : models) {
    const std::string text = rule_of(model_with(scores, inputs));
    EXPECT_THAT(with_rule(), AllOf(HasSubstr("fused  [mine]"), HasSubstr("verified"))) << text;
  }
}

TEST_F(RuleOutTest, OperandsWithoutHeadsGetTheirAxis) {
  const std::string text = rule_of(model_with("  scores = Mul (product, scale)", "", "6"));
  EXPECT_THAT(text, AllOf(HasSubstr("# WHERE   q: [H, L, D]\n"), HasSubstr("Unsqueeze"), HasSubstr("Squeeze")));
  EXPECT_THAT(with_rule(), HasSubstr("fused  [mine]")) << text;
}

TEST_F(RuleOutTest, WhatItLeavesOutIsSaidAndRefused) {
  const std::string text = rule_of(model_with("  positive = Relu (product)\n  scores = Mul (positive, scale)"));
  EXPECT_THAT(text, HasSubstr("# check: the replacement says nothing of Relu\n"));
  EXPECT_THAT(with_rule(), AllOf(HasSubstr("refused  [mine]"), HasSubstr("failed"))) << text;
}

TEST_F(RuleOutTest, AProductInOtherWordsIsSpelledWhole) {
  std::string model = model_with("  scores = Mul (product, scale)");
  const std::string turned = "  kt = Transpose <perm = [0, 1, 3, 2]> (secret_k)\n  product = MatMul (secret_q2, kt)\n";
  model.replace(
      model.find(turned), turned.size(),
      "  three = Constant <value_ints = [3]> ()\n  two = Constant <value_ints = [2]> ()\n"
      "  last = Constant <value_ints = [-1]> ()\n  q5 = Unsqueeze (secret_q2, three)\n  k5 = Unsqueeze (secret_k, two)\n"
      "  pairs = Mul (q5, k5)\n  product = ReduceSum <keepdims = 0> (pairs, last)\n");
  const std::string text = rule_of(model);
  EXPECT_THAT(text, AllOf(HasSubstr("no product of Q and K was found"), HasSubstr("Unsqueeze")));
}

TEST_F(RuleOutTest, EveryCaseGivesOneThatLoads) {
  constexpr size_t kStep = 4;  // of a thousand cases
  const auto cases = find_cases(
      {ATTN_OPT_TESTDATA "/cases/producers", ATTN_OPT_TESTDATA "/cases/contrib", ATTN_OPT_TESTDATA "/cases/softmax_attention"});
  ASSERT_TRUE(cases.has_value());
  int written = 0;
  for (size_t i = 0; i < cases->size(); i += kStep) {
    const ToolResult result = run("explain '" + (*cases)[i].string() + "' --rule-out out.rule");
    const bool has_site = result.err.find("no attention found") == std::string::npos;
    EXPECT_EQ(result.status, has_site ? 0 : 3) << (*cases)[i] << result.err;  // it reads what it wrote
    written += exists("out.rule");
    std::filesystem::remove(file("out.rule"));
  }
  EXPECT_GE(written, 150);
}

TEST_F(RuleOutTest, CannotBeWritten) {
  write_file(file("in.onnxtxt"), attention_model());
  const ToolResult result = run("explain in.onnxtxt --rule-out no/such/folder/mine.rule");
  EXPECT_EQ(result.status, 5);
  EXPECT_THAT(result.err, IsOneErrorLine());
}

}  // namespace
}  // namespace attn_opt
