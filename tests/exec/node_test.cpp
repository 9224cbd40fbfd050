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

/// Rounds a quotient that is a tie in float32 and none in double.
bool rounds_otherwise_in_double(const std::string& name) { return name.starts_with("test_dynamicquantizelinear"); }

struct Counts {
  int pass = 0, wrong = 0, unsupported = 0;

  int& of(Outcome outcome) { return outcome == Outcome::kPass ? pass : outcome == Outcome::kWrong ? wrong : unsupported; }
};

/// Runs all of ATTN_OPT_NODE_TESTS whose names start with PREFIX and lists those that do not pass.
Counts run_all(const char* root, const std::string& prefix, const ExecutorOptions& options) {
  Counts counts;
  for (const auto& folder : node_cases(root)) {
    const std::string name = folder.filename().string();
    if (!name.starts_with(prefix)) continue;
    if (options.compute_f64 && rounds_otherwise_in_double(name)) continue;
    const NodeResult result = run_node_case(folder, options);
    ++counts.of(result.outcome);
    if (result.outcome == Outcome::kPass) continue;
    std::cout << (result.outcome == Outcome::kWrong ? "wrong " : "unsupported ") << name << ": " << result.detail << "\n";
  }
  std::cout << counts.pass << " pass, " << counts.wrong << " wrong, " << counts.unsupported << " unsupported\n";
  return counts;
}

class NodeTests : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(root_, nullptr) << "ATTN_OPT_NODE_TESTS names the folder that tests/exec/write_node_tests.py wrote";
  }

  const char* root_ = std::getenv("ATTN_OPT_NODE_TESTS");
};

TEST_F(NodeTests, NoneIsWrongAndFewAreUnsupported) {
  const Counts counts = run_all(root_, "", {});
  EXPECT_EQ(counts.wrong, 0);
  EXPECT_GE(counts.pass, 0.92 * (counts.pass + counts.unsupported));
}

TEST_F(NodeTests, NoneIsWrongInDouble) {
  ExecutorOptions options;
  options.compute_f64 = true;
  EXPECT_EQ(run_all(root_, "", options).wrong, 0);
}

TEST_F(NodeTests, AllOfAttentionPass) {
  const Counts counts = run_all(root_, "test_attention_", {});
  EXPECT_GT(counts.pass, 0);
  EXPECT_EQ(counts.wrong + counts.unsupported, 0);
}

}  // namespace
}  // namespace attn_opt::testing
