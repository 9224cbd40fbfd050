// Conformance: ONNX's backend node tests. Those in testdata/node_tests always run; ATTN_OPT_NODE_TESTS names
// a folder with more of them, of which those with supported operators must pass.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "tests/exec/node_case.h"

namespace attn_opt::testing {
namespace {

class NodeTest : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(NodeTest, GivesTheReferenceOutputs) {
  const NodeResult result = run_node_case(GetParam());
  EXPECT_EQ(result.outcome, Outcome::kPass) << result.detail;
}

TEST_P(NodeTest, GivesTheReferenceOutputsInDouble) {
  ExecutorOptions options;
  options.compute_f64 = true;
  const NodeResult result = run_node_case(GetParam(), options);
  EXPECT_EQ(result.outcome, Outcome::kPass) << result.detail;
}

INSTANTIATE_TEST_SUITE_P(Onnx, NodeTest, ::testing::ValuesIn(node_cases(ATTN_OPT_TESTDATA "/node_tests")),
                         [](const auto& given) { return given.param.filename().string(); });

/// Their outputs were computed in float32: where 0 is right they say 1.9e-7, nearly twice their own
/// tolerance.
bool is_off_itself(const std::filesystem::path& folder) {
  return folder.filename() == "test_dft_inverse" || folder.filename() == "test_dft_inverse_opset19";
}

TEST(NodeTests, NoneThatIsSupportedIsWrong) {
  const char* root = std::getenv("ATTN_OPT_NODE_TESTS");
  if (root == nullptr) GTEST_SKIP() << "ATTN_OPT_NODE_TESTS is not set";
  ExecutorOptions options;
  options.compute_f64 = std::getenv("ATTN_OPT_NODE_TESTS_F64") != nullptr;
  const char* outcomes[] = {"pass", "wrong", "unsupported"};
  int counts[3] = {};
  for (const auto& folder : node_cases(root)) {
    if (is_off_itself(folder)) continue;
    const NodeResult result = run_node_case(folder, options);
    ++counts[static_cast<int>(result.outcome)];
    if (result.outcome == Outcome::kPass) continue;
    std::cout << outcomes[static_cast<int>(result.outcome)] << " " << folder.filename().string() << ": "
              << result.detail << "\n";
  }
  std::cout << counts[0] << " pass, " << counts[1] << " wrong, " << counts[2] << " unsupported\n";
  EXPECT_GT(counts[0], 0);
  EXPECT_EQ(counts[1], 0);
}

}  // namespace
}  // namespace attn_opt::testing
