// What scripts make of variables that are not set.
#include "tests/cli/tool.h"

namespace attn_opt {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class EmptyValues : public ToolTest {
 protected:
  void SetUp() override {
    ToolTest::SetUp();
    write_file(file("in.onnxtxt"), attention_model());
  }
};

TEST_F(EmptyValues, NoOptionTakesAnEmptyText) {
  for (const std::string arguments :
       {"in.onnxtxt -o ''", "'' -o out.onnx", "in.onnxtxt --opset '' -o out.onnx", "in.onnxtxt --baseline '' -o out.onnx",
        "in.onnxtxt --dump-matches '' -o out.onnx", "in.onnxtxt --rules '' -o out.onnx",
        "in.onnxtxt --allow-data-dir '' -o out.onnx", "in.onnxtxt --require-fused '' -o out.onnx",
        "in.onnxtxt --only softmax_attention --only '' -o out.onnx", "run in.onnxtxt --outputs ''", "compare in.onnxtxt ''",
        "explain in.onnxtxt --node ''", "batch in.onnxtxt -o ''", "batch '' -o out.onnx", "test ''"}) {
    const ToolResult result = run(arguments);
    EXPECT_EQ(result.status, 2) << arguments;
    EXPECT_THAT(result.err, AllOf(IsOneErrorLine(), HasSubstr("'' is no value of it"))) << arguments;
    EXPECT_FALSE(exists("out.onnx")) << arguments;
  }
  EXPECT_THAT(run("in.onnxtxt -o ''").err, HasSubstr("--output: '' is no value of it; it takes FILE\n"));
  EXPECT_EQ(run("in.onnxtxt --report json:").status, 2);
}

}  // namespace
}  // namespace attn_opt
