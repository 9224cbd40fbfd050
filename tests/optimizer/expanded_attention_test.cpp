// ONNX's node tests of Attention with the operator written out as its own body: each must become one node again that gives
// the test's reference outputs.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>

#include "src/trial/tensor_difference.h"
#include "src/trial/test_data.h"
#include "tests/optimizer/optimizer_case.h"

namespace attn_opt {
namespace {

namespace fs = std::filesystem;

/// Windows came with opset 25.
enum class Bodies { kWithoutWindow, kWithWindow };

/// The folders of ROOT with such a body, sorted.
std::vector<fs::path> bodies_in(const fs::path& root, Bodies wanted) {
  std::vector<fs::path> bodies;
  for (const auto& entry : fs::directory_iterator(root)) {
    const std::string name = entry.path().filename().string();
    const bool has_window = name.find("window") != std::string::npos;
    if (name.starts_with("test_attention_") && name.ends_with("_expanded") && has_window == (wanted == Bodies::kWithWindow))
      bodies.push_back(entry.path());
  }
  std::ranges::sort(bodies);
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

/// The windows that MODEL's Attention nodes have, and whether they are causal.
std::string windows_of(const Model& model) {
  std::string text;
  for (const auto& node : model.proto.graph().node())
    for (const auto& attribute : node.attribute())
      if (node.op_type() == "Attention" && (attribute.name().ends_with("_window_size") || attribute.name() == "is_causal"))
        text += (text.empty() ? "" : " ") + attribute.name() + "=" + std::to_string(attribute.i());
  return text;
}

class ExpandedAttention : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(root_, nullptr) << "ATTN_OPT_NODE_TESTS names the folder that tests/exec/write_node_tests.py wrote";
  }

  /// How many BODIES fuse for TARGET; those that TARGET has no type for are passed over. Returns their windows by name.
  std::map<std::string, std::string> expect_all_fuse(Bodies bodies, Target target, int opset, bool takes_all_types) {
    OptimizeOptions options;
    options.emit.target = target;
    options.opset = opset;
    int fused = 0, of_other_types = 0;
    std::map<std::string, std::string> windows;
    for (const fs::path& folder : bodies_in(root_, bodies)) {
      SCOPED_TRACE(folder.filename().string());
      auto loaded = load_model(folder / "model.onnx");
      if (!loaded) {
        ADD_FAILURE() << loaded.error().message();
        continue;
      }
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
      windows[folder.filename().string()] = windows_of(*loaded);
      ++fused;
    }
    std::cout << fused << " bodies fused, " << of_other_types << " of types that the target has not\n";
    EXPECT_GT(fused, 0);
    return windows;
  }

  const char* root_ = std::getenv("ATTN_OPT_NODE_TESTS");
};

TEST_F(ExpandedAttention, AllFuseForTheOperatorItself) { expect_all_fuse(Bodies::kWithoutWindow, Target::kSpec, 24, true); }

TEST_F(ExpandedAttention, AllFuseForEveryRuntime) { expect_all_fuse(Bodies::kWithoutWindow, Target::kPortable, 24, false); }

TEST_F(ExpandedAttention, WindowsAreAttributesOfOpset25) {
  auto windows = expect_all_fuse(Bodies::kWithWindow, Target::kSpec, 25, true);
  EXPECT_GE(windows.size(), 11u);
  EXPECT_EQ(windows["test_attention_bidirectional_window_expanded"], "left_window_size=1 right_window_size=2");
  windows.erase("test_attention_bidirectional_window_expanded");
  EXPECT_EQ(windows["test_attention_local_window_default_expanded"], "");
  windows.erase("test_attention_local_window_default_expanded");
  for (const auto& [name, window] : windows) EXPECT_EQ(window, "is_causal=1 left_window_size=2") << name;
}

TEST_F(ExpandedAttention, WindowsAreMasksBelowOpset25) {
  for (const auto& [name, window] : expect_all_fuse(Bodies::kWithWindow, Target::kPortable, 24, false))
    EXPECT_TRUE(window.empty() || window == "is_causal=1") << name << ": " << window;
}

}  // namespace
}  // namespace attn_opt
