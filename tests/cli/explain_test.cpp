// explain and patterns.
#include "tests/cli/tool.h"

namespace attn_opt {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(ToolTest, ExplainSaysHowASiteIsFused) {
  write_file(file("in.onnxtxt"), attention_model());
  const ToolResult result = run("explain in.onnxtxt");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("  fused  [softmax_attention]\n"), HasSubstr("  form "), HasSubstr("scale 1\n"),
                                HasSubstr("  verdict   verified")));
}

TEST_F(ToolTest, ExplainSaysWhatStandsInTheWay) {
  write_file(file("other.onnxtxt"), other_model());
  const ToolResult result = run("explain other.onnxtxt");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("p  not fused  [softmax_attention]\n"), HasSubstr("  stopped   at "),
                                HasSubstr("  hint      attn-opt explain --id softmax.axis\n")));
}

TEST_F(ToolTest, QuietMeansErrorsOnly) {
  write_file(file("other.onnxtxt"), other_model());
  const ToolResult result = run("explain other.onnxtxt -q --case-out case.onnxtxt");
  EXPECT_EQ(result.out + result.err, "");
  EXPECT_TRUE(exists("case.onnxtxt"));
}

TEST_F(ToolTest, HelpSaysOfEachCommandWhatItsOptionsDo) {
  EXPECT_THAT(run("batch --help").out, AllOf(HasSubstr("-o,--output DIR "), HasSubstr("-vv also says why each pattern")));
  EXPECT_THAT(run("--help").out, HasSubstr("-o,--output FILE "));
  for (const std::string command : {"run", "compare"}) EXPECT_THAT(run(command + " --help").out, Not(HasSubstr("-vv")));
}

TEST_F(ToolTest, ExplainTakesOneNode) {
  write_file(file("other.onnxtxt"), other_model());
  EXPECT_EQ(run("explain other.onnxtxt --node p").status, 0);
  const ToolResult wrong = run("explain other.onnxtxt --node q");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, AllOf(IsOneErrorLine(), HasSubstr("did you mean 'p'?")));
}

/// One attention in each branch of an If, both with the same names.
std::string branches() {
  const std::string body =
      "(float[2,2,5,8] y) { kt = Transpose <perm = [0, 1, 3, 2]> (k) s = MatMul (q, kt) "
      "p = Softmax <axis = -1> (s) y = MatMul (p, v) }";
  return "<ir_version: 8, opset_import: [\"\" : 18]>\n"
         "g (bool c, float[2,2,5,8] q, float[2,2,5,8] k, float[2,2,5,8] v) => (float[2,2,5,8] z) {\n"
         "  z = If (c) <then_branch = t () => " +
         body + ", else_branch = e () => " + body + ">\n}\n";
}

TEST_F(ToolTest, ExplainTellsSitesOfTwoBranchesApart) {
  write_file(file("if.onnxtxt"), branches());
  const std::string both = run("explain if.onnxtxt").out;
  EXPECT_THAT(both, AllOf(HasSubstr("main/z:then_branch/p  fused"), HasSubstr("main/z:else_branch/p  fused")));
  EXPECT_THAT(run("explain if.onnxtxt --node p").out, AllOf(HasSubstr("then_branch"), HasSubstr("else_branch")));
  const ToolResult one = run("explain if.onnxtxt --node main/z:else_branch/p");
  EXPECT_EQ(one.status, 0) << one.err;
  EXPECT_THAT(one.out, AllOf(HasSubstr("else_branch"), Not(HasSubstr("then_branch"))));
  EXPECT_THAT(run("explain if.onnxtxt --node nowhere_at_all").err,
              HasSubstr("there are main/z:else_branch/p, main/z:then_branch/p\n"));
}

TEST_F(ToolTest, ExplainTakesAModuleForItsNodes) {
  const std::string model = " '" ATTN_OPT_TESTDATA "/models/encoder-dy20e.onnx' ";
  const ToolResult result = run("explain" + model + "--node layers.1");
  EXPECT_THAT(result.out, testing::StartsWith("layers.1 (model.py:12)  node_softmax_1  fused"));
  EXPECT_THAT(result.out, Not(HasSubstr("layers.0")));
}

TEST_F(ToolTest, ExplainPrintsTheManualOfAMiss) {
  const ToolResult result = run("explain --id scores.operator");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(testing::StartsWith("scores.operator\n\n"), HasSubstr("\n- Example: "),
                                HasSubstr("\n- Remedy: "), Not(HasSubstr("`"))));
  const ToolResult wrong = run("explain --id scores.operater");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, AllOf(IsOneErrorLine(), HasSubstr("did you mean 'scores.operator'?")));
  const ToolResult neither = run("explain");
  EXPECT_EQ(neither.status, 2);
  EXPECT_THAT(neither.err, AllOf(IsOneErrorLine(), HasSubstr("MODEL is required")));
}

TEST_F(ToolTest, ExplainPrintsTheManualOfAPrecondition) {
  for (const std::string id : {"rows-keep-a-key", "scores-finite", "lengths-in-range"}) {
    const ToolResult result = run("explain --id " + id);
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_THAT(result.out,
                AllOf(testing::StartsWith(id + "\n\nA precondition: "), HasSubstr("--strict refuses"), Not(HasSubstr("`"))));
  }
  EXPECT_THAT(run("explain --id sizes-not-empty").out, HasSubstr("--exact refuses"));
  EXPECT_THAT(run("explain --id scores-finit").err, HasSubstr("did you mean 'scores-finite'?"));
  EXPECT_EQ(run("explain --id foo").err,
            "attn-opt: --id: there is no miss or precondition 'foo'; explain MODEL names those of its sites\n");
  EXPECT_EQ(run("explain --id proven").status, 2) << "a row of another table";
}

TEST_F(ToolTest, ExplainOfAModelWithoutAttention) {
  write_file(file("none.onnxtxt"),
             "<ir_version: 8, opset_import: [\"\" : 18]>\ng (float[2] x) => (float[2] y) { y = Relu (x) }\n");
  const ToolResult result = run("explain none.onnxtxt");
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.out,
            "no attention found\nrun: attn-opt patterns lists what is looked for; --rules adds rules of your own\n");
  for (const std::string option : {"--case-out", "--rule-out"}) {
    const ToolResult nothing = run("explain none.onnxtxt " + option + " out");
    EXPECT_EQ(nothing.status, 3);
    EXPECT_THAT(nothing.err, AllOf(IsOneErrorLine(), HasSubstr(option + ": no attention found")));
    EXPECT_FALSE(exists("out"));
  }
}

TEST_F(ToolTest, AnOptimisedModelIsSaidToBeOne) {
  write_file(file("in.onnxtxt"), attention_model());
  ASSERT_EQ(run("in.onnxtxt -o out.onnx").status, 0);
  EXPECT_EQ(run("explain out.onnx").out, "no attention to fuse: 1 is an attention operator already\n");
  EXPECT_THAT(run("out.onnx").out,
              testing::StartsWith("attention sites: 0 of 0 fused, 0 refused, 0 missed; 1 is an attention operator already\n"));
  const ToolResult required = run("out.onnx --require-fused all --report r.json");
  EXPECT_EQ(required.status, 1);
  EXPECT_THAT(required.err,
              AllOf(IsOneErrorLine(), HasSubstr("nothing is left to be fused: 1 is an attention operator already")));
  EXPECT_THAT(read_file(file("r.json")), HasSubstr("\"attention_nodes\": 1"));
}

TEST_F(ToolTest, PatternsHaveALineEach) {
  const ToolResult result = run("patterns");
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.out, HasSubstr("softmax_attention  "));
  EXPECT_THAT(result.out, Not(HasSubstr("  \n"))) << "every pattern has a summary";
  EXPECT_EQ(run("patterns too-much").status, 2);
}

}  // namespace
}  // namespace attn_opt
