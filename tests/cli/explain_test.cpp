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
  EXPECT_THAT(result.out, AllOf(HasSubstr("  fused  [softmax_attention]\n"), HasSubstr("  form "),
                                HasSubstr("scale 1\n"), HasSubstr("  verdict   verified")));
}

TEST_F(ToolTest, ExplainSaysWhatStandsInTheWay) {
  write_file(file("other.onnxtxt"), other_model());
  const ToolResult result = run("explain other.onnxtxt");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("p  not fused  [softmax_attention]\n"),
                                HasSubstr("  stopped   at "), HasSubstr("  hint      docs/misses.md#")));
}

TEST_F(ToolTest, ExplainTakesOneNode) {
  write_file(file("other.onnxtxt"), other_model());
  EXPECT_EQ(run("explain other.onnxtxt --node p").status, 0);
  const ToolResult wrong = run("explain other.onnxtxt --node q");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, AllOf(IsOneErrorLine(), HasSubstr("did you mean 'p'?")));
}

TEST_F(ToolTest, ExplainOfAModelWithoutAttention) {
  write_file(file("none.onnxtxt"),
             "<ir_version: 8, opset_import: [\"\" : 18]>\ng (float[2] x) => (float[2] y) { y = Relu (x) }\n");
  const ToolResult result = run("explain none.onnxtxt");
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.out, "no attention found\n");
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
