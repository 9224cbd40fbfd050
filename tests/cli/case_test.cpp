// The command test: what makes a case pass and fail.
#include "tests/cli/tool.h"

namespace attn_opt {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

class CaseCommand : public ToolTest {
 protected:
  /// Writes a case of attention with HEADER below its name and runs it.
  ToolResult run_case(const std::string& header, const std::string& options = "") {
    write_file(file("one.onnxtxt"), "# CASE one\n" + header + attention_model());
    return run("test one.onnxtxt " + options);
  }
};

TEST_F(CaseCommand, APassingCase) {
  const ToolResult result = run_case(
      "# SOURCE the formula\n#\n# RUN attn-opt --only softmax_attention\n"
      "# EXPECT fused=1 missed=0 refused=0 ops=\"Attention:1 Softmax:0 Transpose:0\" scale=1 softcap=0 "
      "kv_heads=2\n"
      "# EXPECT past=no verdict=verified opset=24\n# FEED q=uniform(-1,1)\n# VERIFY f32 atol=2e-6 rtol=1e-5 "
      "nan=forbid\n");
  EXPECT_EQ(result.status, 0) << result.out << result.err;
  EXPECT_EQ(result.out, "1 passed, 0 failed\n");
  EXPECT_THAT(run("test -v one.onnxtxt").out, HasSubstr("pass one\n"));
}

TEST_F(CaseCommand, EveryExpectationCanFail) {
  for (const std::string wish :
       {"fused=0", "fused=2", "fused=1 missed=1", "fused=1 refused=1", "fused=1 miss=softmax.axis", "fused=1 ops=\"Softmax:1\"",
        "fused=1 scale=0.5", "fused=1 scale=1 scale=2", "fused=1 softcap=30", "fused=1 kv_heads=1", "fused=1 past=yes",
        "fused=1 verdict=failed", "fused=1 precondition=no-such", "fused=1 attr.is_causal=7", "fused=1 opset=23"}) {
    const ToolResult result = run_case("# EXPECT " + wish + "\n");
    EXPECT_EQ(result.status, 1) << wish;
    EXPECT_THAT(result.out, AllOf(HasSubstr("FAIL one (one.onnxtxt)\n"), HasSubstr(": expected "), HasSubstr(", was "),
                                  EndsWith("0 passed, 1 failed\n")))
        << wish;
  }
}

TEST_F(CaseCommand, AnUnexpectedMissIsExplained) {
  write_file(file("other.onnxtxt"), "# CASE other\n# EXPECT fused=1\n" + other_model());
  const ToolResult result = run("test other.onnxtxt");
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.out, AllOf(HasSubstr("  fused: expected 1, was 0\n"), HasSubstr("  p  not fused"),
                                HasSubstr("attn-opt explain --id softmax.axis")));
}

TEST_F(CaseCommand, HeadersThatAreNotUnderstoodFail) {
  for (const std::string header :
       {"# EXPCET fused=1\n", "# EXPECT fused=1\n# Expect fused=1\n", "# EXPECT fusd=1\n", "# EXPECT fused\n",
        "# EXPECT fused=one\n", "# EXPECT scale=1\n", "# EXPECT fused=1 form=5d\n", "# EXPECT fused=1 past=maybe\n",
        "# EXPECT fused=1\n# FEED q=nonsense\n", "# EXPECT fused=1\n# FEED w=ones\n", "# EXPECT fused=1\n# FEED n=4\n",
        "# EXPECT fused=1\n# VERIFY f33\n", "# EXPECT fused=1\n# VERIFY f16\n", "# EXPECT fused=1\n# RUN --no-such-option\n",
        "# EXPECT fused=1\n# RUN --only no_such_pattern\n", "# EXPECT fused=1\n# AFTER golden.txt\n",
        "# EXPECT fused=1\n# CASE two\n", ""}) {
    const ToolResult result = run_case(header);
    EXPECT_EQ(result.status, 1) << header;
    EXPECT_THAT(result.out, HasSubstr("FAIL one")) << header;
  }
  EXPECT_THAT(run_case("# EXPCET fused=1\n").out, HasSubstr("one.onnxtxt:2: 'EXPCET' is no key"));
}

TEST_F(CaseCommand, AHeaderBelowTheModelFails) {
  write_file(file("late.onnxtxt"), "# CASE late\n# EXPECT fused=1\n" + attention_model() + "# EXPECT fused=0\n");
  EXPECT_THAT(run("test late.onnxtxt").out, HasSubstr("a line of the header is not at the top"));
}

TEST_F(CaseCommand, AModelThatIsNotValidFails) {
  write_file(file("bad.onnxtxt"),
             "# CASE bad\n# EXPECT fused=0\n<ir_version: 8, opset_import: [\"\" : 18]>\n"
             "g (float[2] x) => (float[3] y) { y = Relu (x) }\n");
  const ToolResult result = run("test bad.onnxtxt");
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.out, HasSubstr("the case's own model is not valid"));
}

TEST_F(CaseCommand, GoldenFilesAreComparedAndRewritten) {
  const std::string header = "# EXPECT fused=1\n# AFTER one.after.onnxtxt\n";
  const ToolResult missing = run_case(header);
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.out, HasSubstr("AFTER: the result is not that of one.after.onnxtxt: line 1"));
  const ToolResult written = run_case(header, "--update-golden");
  EXPECT_EQ(written.status, 0) << written.out;
  EXPECT_THAT(written.out, HasSubstr("wrote the golden file of one\n"));
  EXPECT_THAT(read_file(file("one.after.onnxtxt")), HasSubstr("Attention"));
  EXPECT_EQ(run_case(header).status, 0);
  EXPECT_THAT(run_case(header, "--update-golden").out, Not(HasSubstr("wrote")));
  write_file(file("one.after.onnxtxt"), read_file(file("one.after.onnxtxt")) + "x\n");
  EXPECT_EQ(run_case(header).status, 1);
}

TEST_F(CaseCommand, FoldersAreSearched) {
  std::filesystem::create_directories(file("cases/b/deep"));
  std::filesystem::create_directories(file("cases/a"));
  write_file(file("cases/b/deep/two.onnxtxt"), "# CASE two\n# EXPECT fused=0\n" + other_model());
  write_file(file("cases/a/one.onnxtxt"), "# CASE one\n# EXPECT fused=1\n" + attention_model());
  write_file(file("cases/a/one.after.onnxtxt"), "no case");
  write_file(file("cases/a/readme.txt"), "no case either");
  const ToolResult result = run("test -v cases");
  EXPECT_EQ(result.status, 0) << result.out;
  EXPECT_EQ(result.out, "pass one\npass two\n2 passed, 0 failed\n");
}

TEST_F(CaseCommand, PathsThatHoldNoCasesAreErrors) {
  std::filesystem::create_directory(file("empty"));
  write_file(file("model.onnx"), "");
  EXPECT_EQ(run("test missing").status, 3);
  EXPECT_EQ(run("test empty").status, 2);
  EXPECT_EQ(run("test model.onnx").status, 2);
  EXPECT_EQ(run("test").status, 2);
}

}  // namespace
}  // namespace attn_opt
