#include "src/graph/provenance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/text_model.h"

namespace attn_opt {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using Properties = std::vector<std::pair<std::string, std::string>>;

/// The metadata of the nodes of a chain of Abs, in their order, and what it says.
class ProvenanceTest : public ::testing::Test {
 protected:
  Node& node(const std::string& name, const Properties& properties) {
    proto_.set_name(name);
    proto_.clear_metadata_props();
    for (const auto& [key, value] : properties) {
      auto* property = proto_.add_metadata_props();
      property->set_key(key);
      property->set_value(value);
    }
    return node_;
  }
  Provenance read(const std::string& name, const std::string& scopes, const std::string& trace = "") {
    return provenance_of(node(name, {{"pkg.torch.onnx.name_scopes", scopes}, {"pkg.torch.onnx.stack_trace", trace}}));
  }

 private:
  std::pmr::monotonic_buffer_resource memory_;
  onnx::NodeProto proto_;
  Node node_{&memory_};

 protected:
  ProvenanceTest() { node_.proto = &proto_; }
};

TEST_F(ProvenanceTest, TheModuleIsTheLastScopeButTheOperatorsOwn) {
  EXPECT_EQ(read("node_softmax_3", "['', 'model', 'model.b.3', 'softmax_3']").module, "model.b.3");
  EXPECT_EQ(read("n", "['', 'softmax']").module, "") << "the outermost module has no name";
  EXPECT_EQ(read("n", "[\"it's\", 'softmax']").module, "it's");
  EXPECT_EQ(read("n", "").module, "");
  EXPECT_EQ(read("n", "['cut").module, "");
}

TEST_F(ProvenanceTest, TorchScriptPutsTheModuleIntoTheName) {
  EXPECT_EQ(read("/model/layers.0/self_attn/Softmax", "").module, "model.layers.0.self_attn");
  EXPECT_EQ(read("/model/layers/layers.0/blocks/blocks.11/attn/Softmax_1", "").module, "model.layers.0.blocks.11.attn");
  EXPECT_EQ(read("/Softmax", "").module, "");
  EXPECT_EQ(read("a/b/Softmax", "").module, "") << "a name like any other";
}

TEST_F(ProvenanceTest, TheLineIsTheInnermostOfTheUsersOwn) {
  const std::string own = "File \"src/model.py\", line 10, in forward\n    a = b.softmax(-1)";
  const std::string library = "\n  File \"/x/site-packages/torch/nn/functional.py\", line 99, in softmax";
  Provenance found = read("n", "", "File \"main.py\", line 3, in <module>\n    m(x)\n  " + own + library);
  EXPECT_EQ(found.source_file, "src/model.py");
  EXPECT_EQ(found.source_line, 10);
  found = read("n", "", "File \"<frozen>\", line 1, in a" + library);
  EXPECT_EQ(found.source_file, "/x/site-packages/torch/nn/functional.py") << "none is the user's own";
  EXPECT_EQ(found.source_line, 99);
  for (const std::string none :
       {"", "no trace", "File \"a.py\", line x", "File \"a.py\", line 99999999999999999999", "\", line 3, File \""}) {
    found = read("n", "", none);
    EXPECT_EQ(found.source_file, "") << none;
    EXPECT_EQ(found.source_line, 0) << none;
  }
}

Properties properties_of(const Node& node) {
  Properties all;
  for (const auto& property : node.proto->metadata_props()) all.emplace_back(property.key(), property.value());
  return all;
}

TEST(CarryMetadata, TheFirstValueOfAKeyCountsAndRulesAreJoined) {
  std::pmr::monotonic_buffer_resource memory;
  std::vector<onnx::NodeProto> protos(4);
  std::deque<Node> nodes;
  for (auto& proto : protos) nodes.emplace_back(&memory).proto = &proto;
  const auto add = [&](size_t node, const std::string& key, const std::string& value) {
    auto* property = protos[node].add_metadata_props();
    property->set_key(key);
    property->set_value(value);
  };
  const std::string rule = "pkg.onnxscript.rewriter.rule_name";
  add(0, "namespace", "anchor");
  add(0, "empty", "");
  add(0, rule, "A");
  add(1, "namespace", "other");
  add(1, "empty", "not");
  add(1, rule, "B");
  add(3, "own", "kept");
  carry_metadata({&nodes[0], &nodes[1], &nodes[0]}, {&nodes[2], &nodes[3]});
  EXPECT_THAT(properties_of(nodes[2]), ElementsAre(Pair("empty", "not"), Pair("namespace", "anchor"), Pair(rule, "A, B, A")));
  EXPECT_THAT(properties_of(nodes[3]), ElementsAre(Pair("own", "kept")));
  carry_metadata({}, {&nodes[2]});
  protos[2].clear_metadata_props();
  carry_metadata({&nodes[2]}, {&nodes[2]});
  EXPECT_THAT(properties_of(nodes[2]), IsEmpty());
}

}  // namespace
}  // namespace attn_opt
