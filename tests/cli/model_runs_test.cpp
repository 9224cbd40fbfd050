// Exported models on inputs with the outputs that ONNX Runtime gives for them: testdata/runs/NAME.{inputs,expected}.npz.
#include <filesystem>

#include "tests/cli/tool.h"

namespace attn_opt {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> names() {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(ATTN_OPT_TESTDATA "/runs")) {
    const std::string name = entry.path().filename().string();
    const size_t end = name.find(".inputs.npz");
    if (end != std::string::npos) found.push_back(name.substr(0, end));
  }
  std::ranges::sort(found);
  return found;
}

class ModelRuns : public ToolTest, public ::testing::WithParamInterface<std::string> {
 protected:
  std::string data(const std::string& name) const { return ATTN_OPT_TESTDATA "/" + name; }
  std::string archives() const {
    return " --inputs " + data("runs/" + GetParam() + ".inputs.npz") + " --expected " +
           data("runs/" + GetParam() + ".expected.npz");
  }
  std::string model() const {
    const std::string path = data("models/" + GetParam());
    return fs::exists(path + ".onnx") ? path + ".onnx" : path + "/model.onnx";
  }
};

TEST_P(ModelRuns, GiveWhatOnnxRuntimeGives) {
  const ToolResult result = run("run " + model() + archives());
  EXPECT_EQ(result.status, 0) << result.out << result.err;
}

TEST_P(ModelRuns, GiveThatWhenTheyAreOptimisedToo) {
  ASSERT_EQ(run(model() + " -o out.onnx --require-fused all").status, 0);
  const ToolResult result = run("run out.onnx" + archives());
  EXPECT_EQ(result.status, 0) << result.out << result.err;
}

INSTANTIATE_TEST_SUITE_P(Exported, ModelRuns, ::testing::ValuesIn(names()), [](const auto& given) {
  std::string name = given.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace attn_opt
