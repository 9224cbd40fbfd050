// Nodes of com.microsoft on inputs with the outputs that ONNX Runtime gives for them: testdata/contrib/NAME.onnx and
// NAME.{inputs,expected}.npz, drawn by tests/contrib/judge.py.
#include <filesystem>
#include <iostream>

#include "tests/cli/tool.h"

namespace attn_opt {
namespace {

namespace fs = std::filesystem;

class ContribRuns : public ToolTest {
 protected:
  ContribRuns() {
    for (const auto& entry : fs::directory_iterator(ATTN_OPT_TESTDATA "/contrib"))
      if (entry.path().extension() == ".onnx") stems_.push_back(entry.path().parent_path() / entry.path().stem());
    std::ranges::sort(stems_);
  }

  /// Runs MODEL on the inputs of STEM: 1e-5 from what ONNX Runtime gives for them.
  ToolResult compare(const std::string& model, const std::string& stem) {
    return run("run " + model + " --inputs " + stem + ".inputs.npz --expected " + stem +
               ".expected.npz --rtol 1e-5 --atol 1e-5");
  }

  std::vector<std::string> stems_;
};

TEST_F(ContribRuns, KernelsGiveWhatOnnxRuntimeGives) {
  for (const std::string& stem : stems_) {
    const ToolResult result = compare(stem + ".onnx", stem);
    EXPECT_EQ(result.status, 0) << stem << "\n" << result.out << result.err;
  }
  EXPECT_GE(stems_.size(), 40u);
  std::cout << stems_.size() << " nodes\n";
}

TEST_F(ContribRuns, TheyGiveThatWhenTheyAreFusedToo) {
  for (const std::string options : {"", " --form 4d --target spec"})
    for (const std::string& stem : stems_) {
      const ToolResult fused = run(stem + ".onnx -o out.onnx --require-fused 1" + options);
      ASSERT_EQ(fused.status, 0) << stem << "\n" << fused.out << fused.err;
      const ToolResult result = compare("out.onnx", stem);
      EXPECT_EQ(result.status, 0) << stem << options << "\n" << result.out << result.err;
    }
}

}  // namespace
}  // namespace attn_opt
