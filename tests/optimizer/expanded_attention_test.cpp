// ONNX's node tests of Attention with the operator written out as its own body: each must become one node again that gives
// the test's reference outputs.
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "src/trial/tensor_difference.h"
#include "src/trial/test_data.h"
#include "tests/optimizer/optimizer_case.h"

namespace attn_opt {
namespace {

namespace fs = std::filesystem;

/// The folders of ROOT with a body of opset 23 or 24, sorted.
std::vector<fs::path> bodies_in(const fs::path& root) {
  std::vector<fs::path> bodies;
  for (const auto& entry : fs::directory_iterator(root)) {
    const std::string name = entry.path().filename().string();
    const bool is_window = name.find("window") != std::string::npos;  // of opset 25
    if (name.starts_with("test_attention_") && name.ends_with("_expanded") && !is_window) bodies.push_back(entry.path());
  }
  std::sort(bodies.begin(), bodies.end());
  return bodies;
}

/// What an output of MODEL on the data sets of FOLDER is off by; empty if none is.
std::string difference_to_reference(const Model& model, const fs::path& folder) {
  const auto sets = read_test_data(folder, model.proto.graph());
  if (!sets) return sets.error().message();
  ExecutorOptions options;
  options.schema_bodies = SchemaBodies::kAttention;
  const auto executor = Executor::create(model.proto, *model.tensors, options);
  if (!executor) return executor.error().message();
  for (const TestDataSet& set : *sets) {
    const auto outputs = executor->run(set.inputs);
    if (!outputs) return outputs.error().message();
    for (const auto& [number, expected] : set.outputs) {
      const auto found = difference(expected, (*outputs)[static_cast<size_t>(number)], model_tolerance(expected.type()));
      if (!found.agrees()) return "output " + std::to_string(number) + ": " + to_string(found);
    }
  }
  return {};
}

class ExpandedAttention : public testing::Test {
 protected:
  void SetUp() override {
    if (root_ == nullptr) GTEST_SKIP() << "ATTN_OPT_NODE_TESTS is not set";
  }

  /// How many bodies fuse for TARGET; those that TARGET has no type for are passed over.
  void expect_all_fuse(Target target, bool takes_all_types) {
    OptimizeOptions options;
    options.emit.target = target;
    int fused = 0, of_other_types = 0;
    for (const fs::path& folder : bodies_in(root_)) {
      SCOPED_TRACE(folder.filename().string());
      auto loaded = load_model(folder / "model.onnx");
      ASSERT_TRUE(loaded) << loaded.error().message();
      const Report report = optimized(*loaded, options);
      if (!takes_all_types && report.sites.size() == 1 && report.sites[0].miss_id == "target.dtype") {
        ++of_other_types;
        continue;
      }
      EXPECT_THAT(not_fused(report), testing::IsEmpty());
      EXPECT_EQ(count_of(loaded->proto, "Attention"), 1);
      EXPECT_EQ(count_of(loaded->proto, "Softmax") + count_of(loaded->proto, "MatMul"), 0);
      expect_valid(loaded->proto);
      EXPECT_EQ(difference_to_reference(*loaded, folder), "");
      ++fused;
    }
    std::cout << fused << " bodies fused, " << of_other_types << " of types that the target has not\n";
    EXPECT_GT(fused, 0);
  }

  const char* root_ = std::getenv("ATTN_OPT_NODE_TESTS");
};

TEST_F(ExpandedAttention, AllFuseForTheOperatorItself) { expect_all_fuse(Target::kSpec, true); }

TEST_F(ExpandedAttention, AllFuseForEveryRuntime) { expect_all_fuse(Target::kPortable, false); }

}  // namespace
}  // namespace attn_opt
