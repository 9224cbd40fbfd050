// run and compare.
#include <onnx/onnx_pb.h>

#include "attn_opt/tensor.h"
#include "tests/cli/tool.h"

namespace attn_opt {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const char* const kDouble = R"(<ir_version: 8, opset_import: ["" : 18]>
g (float[n, 2] x) => (float[n, 2] y) { y = Add (x, x) }
)";

class Trial : public ToolTest {
 protected:
  void SetUp() override {
    ToolTest::SetUp();
    write_file(file("double.onnxtxt"), kDouble);
  }

  /// A tensor as ONNX's test data holds it.
  void write_tensor(const std::string& name, const std::vector<float>& values) {
    std::filesystem::create_directories(file(name).parent_path());
    const Tensor tensor = Tensor::of<float>({static_cast<int64_t>(values.size()) / 2, 2}, values);
    write_file(file(name), to_proto(tensor).SerializeAsString());
  }
};

TEST_F(Trial, RunPrintsWhatTheOutputsAre) {
  const ToolResult result = run("run double.onnxtxt");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, ContainsRegex("^y  float32 \\(2, 2\\)  min .*max .*mean "));
  EXPECT_EQ(run("run double.onnxtxt").out, result.out) << "drawn alike every time";
  EXPECT_THAT(run("run double.onnxtxt --dim n=7").out, HasSubstr("(7, 2)"));
  EXPECT_THAT(run("run double.onnxtxt --compute f64").out, HasSubstr("float64"));
}

TEST_F(Trial, RunComparesWithTestData) {
  write_tensor("set/input_0.pb", {1, 2, 3, 4});
  write_tensor("set/output_0.pb", {2, 4, 6, 8});
  const ToolResult same = run("run double.onnxtxt --test-data set");
  EXPECT_EQ(same.status, 0) << same.err;
  EXPECT_THAT(same.out, HasSubstr("set: y agrees: largest difference 0 (relative 0)\n"));
  EXPECT_EQ(run("run double.onnxtxt --test-data set --compute f64").status, 0);

  write_tensor("set/output_0.pb", {2, 4, 6.5, 8});
  const ToolResult different = run("run double.onnxtxt --test-data set");
  EXPECT_EQ(different.status, 4);
  EXPECT_THAT(different.out,
              AllOf(HasSubstr("set: y differs"), HasSubstr("0.5"), HasSubstr("the furthest at 2")));
  EXPECT_THAT(different.err, IsOneErrorLine());
  EXPECT_EQ(run("run double.onnxtxt --test-data set --atol 0.6").status, 0);
  EXPECT_EQ(run("run double.onnxtxt --test-data set --rtol 0.1").status, 0);
}

TEST_F(Trial, RunTakesAllSetsOfAFolder) {
  for (const std::string set : {"data/test_data_set_0/", "data/test_data_set_1/"}) {
    write_tensor(set + "input_0.pb", {1, 2});
    write_tensor(set + "output_0.pb", {2, 4});
  }
  EXPECT_EQ(run("run double.onnxtxt --test-data data").status, 0);
  write_tensor("data/test_data_set_1/output_0.pb", {2, 5});
  EXPECT_EQ(run("run double.onnxtxt --test-data data").status, 4);
}

TEST_F(Trial, TestDataThatIsNoneGivesThree) {
  std::filesystem::create_directory(file("empty"));
  std::filesystem::create_directory(file("garbage"));
  write_file(file("garbage/input_0.pb"), "garbage");
  write_tensor("too-many/input_0.pb", {1, 2});
  write_tensor("too-many/input_1.pb", {1, 2});
  write_tensor("unknown-output/input_0.pb", {1, 2});
  write_tensor("unknown-output/output_3.pb", {1, 2});
  write_tensor("no-input/output_0.pb", {1, 2});
  for (const std::string folder : {"missing", "empty", "garbage", "too-many", "unknown-output", "no-input"}) {
    const ToolResult result = run("run double.onnxtxt --test-data " + folder);
    EXPECT_EQ(result.status, 3) << folder;
    EXPECT_THAT(result.err, IsOneErrorLine()) << folder;
  }
}

TEST_F(Trial, AnUnsupportedOperatorIsNamed) {
  write_file(file("custom.onnxtxt"), R"(<ir_version: 8, opset_import: ["" : 18, "my.domain" : 2]>
g (float[2] x) => (float[2] y) { y = my.domain.Mystery (x) }
)");
  const ToolResult result = run("run custom.onnxtxt");
  EXPECT_EQ(result.status, 3);
  EXPECT_THAT(result.err, AllOf(IsOneErrorLine(), HasSubstr("unsupported: my.domain::Mystery (opset 2)")));
}

TEST_F(Trial, UsageErrorsGiveTwo) {
  for (const std::string arguments :
       {"run", "run double.onnxtxt --dim n", "run double.onnxtxt --dim n=x", "run double.onnxtxt --dim n=-1",
        "run double.onnxtxt --dim m=2", "run double.onnxtxt --compute f16", "run double.onnxtxt --rtol -1",
        "compare double.onnxtxt", "compare double.onnxtxt double.onnxtxt --seeds 0"}) {
    const ToolResult result = run(arguments);
    EXPECT_EQ(result.status, 2) << arguments;
    EXPECT_THAT(result.err, IsOneErrorLine()) << arguments;
  }
  EXPECT_THAT(run("run double.onnxtxt --dim m=2").err, HasSubstr("there are n"));
}

TEST_F(Trial, HugeSizesAreRefused) {
  EXPECT_EQ(run("run double.onnxtxt --dim n=4611686018427387904").status, 3);
  EXPECT_EQ(run("run double.onnxtxt --dim n=1000000000").status, 3);
}

TEST_F(Trial, CompareFindsModelsAlike) {
  write_file(file("twice.onnxtxt"), R"(<ir_version: 8, opset_import: ["" : 18]>
g (float[n, 2] x) => (float[n, 2] y) { two = Constant <value_float = 2.0> () y = Mul (x, two) }
)");
  const ToolResult result = run("compare double.onnxtxt twice.onnxtxt --dim n=3");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("y  agrees: largest difference 0 (relative 0), no NaN")));
  EXPECT_THAT(run("compare double.onnxtxt twice.onnxtxt -q").out, IsEmpty());
}

TEST_F(Trial, CompareFindsTheDifference) {
  write_file(file("off.onnxtxt"), R"(<ir_version: 8, opset_import: ["" : 18]>
g (float[n, 2] x) => (float[n, 2] y) { c = Constant <value_float = 0.25> () d = Add (x, x) y = Add (d, c) }
)");
  const ToolResult result = run("compare double.onnxtxt off.onnxtxt");
  EXPECT_EQ(result.status, 4);
  EXPECT_THAT(result.out, HasSubstr("y  differs: largest difference 0.25"));
  EXPECT_EQ(run("compare double.onnxtxt off.onnxtxt --atol 0.3").status, 0);
}

TEST_F(Trial, CompareSeesNanPatterns) {
  write_file(file("nan.onnxtxt"), R"(<ir_version: 8, opset_import: ["" : 18]>
g (float[n, 2] x) => (float[n, 2] y) { z = Sub (x, x) y = Div (z, z) }
)");
  const ToolResult differs = run("compare double.onnxtxt nan.onnxtxt --atol 1e9");
  EXPECT_EQ(differs.status, 4);
  EXPECT_THAT(differs.out, HasSubstr("NaN pattern differs"));
  const ToolResult same = run("compare nan.onnxtxt nan.onnxtxt");
  EXPECT_EQ(same.status, 0) << same.out;
  EXPECT_THAT(same.out, HasSubstr("same NaN pattern"));
}

TEST_F(Trial, CompareRefusesModelsOfOtherInterfaces) {
  write_file(file("two.onnxtxt"), R"(<ir_version: 8, opset_import: ["" : 18]>
g (float[n, 2] x, float[n, 2] w) => (float[n, 2] y) { y = Add (x, w) }
)");
  EXPECT_EQ(run("compare double.onnxtxt two.onnxtxt").status, 4);
}

}  // namespace
}  // namespace attn_opt
