// run and compare.
#include <onnx/onnx-data.pb.h>
#include <onnx/onnx_pb.h>

#include <nlohmann/json.hpp>

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
  EXPECT_THAT(different.out, AllOf(HasSubstr("set: y differs"), HasSubstr("0.5"), HasSubstr("the furthest at (1, 0)")));
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

TEST_F(Trial, RunTakesAndGivesArchives) {
  ASSERT_EQ(run("run double.onnxtxt --outputs y.npz -q").status, 0);
  write_file(file("again.onnxtxt"), R"(<ir_version: 8, opset_import: ["" : 18]>
g (float[n, 2] y) => (float[n, 2] z) { z = Add (y, y) }
)");
  ASSERT_EQ(run("run again.onnxtxt --inputs y.npz --outputs z.npz").status, 0);
  const ToolResult same = run("run again.onnxtxt --inputs y.npz --expected z.npz");
  EXPECT_EQ(same.status, 0) << same.err;
  EXPECT_THAT(same.out, HasSubstr("z agrees"));
  EXPECT_EQ(run("run double.onnxtxt --inputs y.npz").status, 3) << "no input of that name";
  EXPECT_EQ(run("run again.onnxtxt --inputs y.npz --expected y.npz").status, 3) << "none of the outputs";
  EXPECT_EQ(run("run again.onnxtxt --inputs missing.npz").status, 3);
  EXPECT_EQ(run("run double.onnxtxt --outputs missing/y.npz").status, 5);

  write_file(file("half.onnxtxt"), R"(<ir_version: 8, opset_import: ["" : 18]>
g (float[n, 2] y) => (float[n, 2] z) { z = Abs (y) }
)");
  const ToolResult differs = run("run half.onnxtxt --inputs y.npz --expected z.npz");
  EXPECT_EQ(differs.status, 4);
  EXPECT_THAT(differs.out, HasSubstr("z differs"));
  EXPECT_THAT(differs.err, IsOneErrorLine());
}

TEST_F(Trial, RunTakesSequencesOfTestData) {
  write_file(file("at.onnxtxt"), R"(<ir_version: 8, opset_import: ["" : 18]>
g (seq(float[n, 2]) s) => (float[n, 2] y) { i = Constant <value_int = 1> () y = SequenceAt (s, i) }
)");
  onnx::SequenceProto sequence;
  sequence.set_elem_type(onnx::SequenceProto::TENSOR);
  *sequence.add_tensor_values() = to_proto(Tensor::of<float>({1, 2}, {1, 2}));
  *sequence.add_tensor_values() = to_proto(Tensor::of<float>({1, 2}, {3, 4}));
  write_tensor("set/output_0.pb", {3, 4});
  write_file(file("set/input_0.pb"), sequence.SerializeAsString());
  const ToolResult result = run("run at.onnxtxt --test-data set");
  EXPECT_EQ(result.status, 0) << result.err << result.out;
}

TEST_F(Trial, ProfileHasAnEventForEachNode) {
  ASSERT_EQ(run("run double.onnxtxt --profile trace.json").status, 0);
  const auto trace = nlohmann::json::parse(read_file(file("trace.json")));
  ASSERT_EQ(trace["traceEvents"].size(), 1u);
  EXPECT_EQ(trace["traceEvents"][0]["name"], "Add");
  EXPECT_EQ(trace["traceEvents"][0]["ph"], "X");
  EXPECT_EQ(trace["traceEvents"][0]["args"]["outputs"], "float32 (2, 2)");
}

TEST_F(Trial, BeyondTheMemoryLimitGivesThree) {
  const ToolResult result = run("run double.onnxtxt --dim n=100000 --memory-limit 1MB");
  EXPECT_EQ(result.status, 3);
  EXPECT_THAT(result.err, AllOf(IsOneErrorLine(), HasSubstr("memory")));
  EXPECT_EQ(run("run double.onnxtxt --dim n=100000 --memory-limit 100MB").status, 0);
}

TEST_F(Trial, ResultsDoNotDependOnTheThreads) {
  write_file(file("product.onnxtxt"), R"(<ir_version: 8, opset_import: ["" : 18]>
g (float[3, 300, 200] a, float[3, 200, 310] b) => (float[3, 300, 310] y) { y = MatMul (a, b) }
)");
  ASSERT_EQ(run("run product.onnxtxt --threads 1 --outputs one.npz").status, 0);
  ASSERT_EQ(run("run product.onnxtxt --threads 4 --outputs four.npz").status, 0);
  EXPECT_TRUE(read_file(file("one.npz")) == read_file(file("four.npz")));
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
        "run double.onnxtxt --rtol nan", "run double.onnxtxt --memory-limit -1", "compare double.onnxtxt",
        "compare double.onnxtxt double.onnxtxt --seeds 0"}) {
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
  EXPECT_THAT(result.out, AllOf(HasSubstr("y  agrees: largest difference 0 (relative 0), no NaN, no Inf")));
  EXPECT_THAT(run("compare double.onnxtxt twice.onnxtxt -q").out, IsEmpty());
}

TEST_F(Trial, CompareTakesAllCombinationsOfSizes) {
  write_file(file("short.onnxtxt"), R"(<ir_version: 8, opset_import: ["" : 18]>
g (float[n, 2] x) => (float[n, 2] y) {
  shape = Shape (x) four = Constant <value_ints = [4, 4]> () less = Less (shape, four) a = Constant <value_ints = [0]> ()
  n_less = Gather (less, a) z = Add (x, x) y = Where (n_less, z, x)
}
)");
  EXPECT_EQ(run("compare double.onnxtxt short.onnxtxt --dim n=2,3").status, 0);
  EXPECT_EQ(run("compare double.onnxtxt short.onnxtxt --dim n=2,5").status, 4);
  EXPECT_EQ(run("run double.onnxtxt --dim n=2,5").status, 2);
  EXPECT_EQ(run("compare double.onnxtxt short.onnxtxt --dim n=2,").status, 2);
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
