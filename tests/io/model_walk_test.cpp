#include "attn_opt/internal/model_walk.h"

#include "tests/io/io_test.h"

namespace attn_opt {
namespace {

/// One named graph, node and tensor at every place that can hold one.
onnx::ModelProto everywhere() {
  onnx::ModelProto model;
  const auto fill_attribute = [](onnx::AttributeProto& attribute, const std::string& name) {
    attribute.mutable_t()->set_name(name + ".t");
    attribute.add_tensors()->set_name(name + ".tensors");
    attribute.mutable_sparse_tensor()->mutable_values()->set_name(name + ".sparse");
    attribute.add_sparse_tensors()->mutable_indices()->set_name(name + ".sparse_tensors");
  };
  model.mutable_graph()->set_name("main");
  model.mutable_graph()->add_initializer()->set_name("initializer");
  model.mutable_graph()->add_sparse_initializer()->mutable_values()->set_name("sparse_initializer");
  auto* node = model.mutable_graph()->add_node();
  node->set_name("if");
  fill_attribute(*node->add_attribute(), "if");
  auto* inner = node->add_attribute()->mutable_g();
  inner->set_name("then");
  inner->add_initializer()->set_name("then.initializer");
  inner->add_node()->set_name("then.node");
  inner->mutable_node(0)->add_attribute()->add_graphs()->set_name("innermost");
  auto* function = model.add_functions();
  function->add_node()->set_name("function.node");
  fill_attribute(*function->add_attribute_proto(), "default");
  auto* training = model.add_training_info();
  training->mutable_initialization()->set_name("initialization");
  training->mutable_algorithm()->set_name("algorithm");
  return model;
}

TEST(ModelWalk, FindsEverythingOnce) {
  const onnx::ModelProto model = everywhere();
  std::vector<std::string> graphs, nodes, tensors;
  for_each_graph(model, [&](const onnx::GraphProto& graph) { graphs.push_back(graph.name()); });
  for_each_node(model, [&](const onnx::NodeProto& node) { nodes.push_back(node.name()); });
  for_each_tensor(model, [&](const onnx::TensorProto& tensor) { tensors.push_back(tensor.name()); });
  using testing::ElementsAre;
  using testing::UnorderedElementsAre;
  EXPECT_THAT(graphs, ElementsAre("main", "initialization", "algorithm", "then", "innermost"));
  EXPECT_THAT(nodes, UnorderedElementsAre("if", "then.node", "function.node"));
  EXPECT_THAT(tensors, UnorderedElementsAre("initializer", "sparse_initializer", "then.initializer", "if.t", "if.tensors",
                                            "if.sparse", "if.sparse_tensors", "default.t", "default.tensors", "default.sparse",
                                            "default.sparse_tensors"));
}

TEST(ModelWalk, ChangesNothingByItself) {
  onnx::ModelProto model = everywhere();
  const std::string before = model.SerializeAsString();
  for_each_tensor(model, [](onnx::TensorProto&) {});
  for_each_graph(model, [](onnx::GraphProto&) {});
  for_each_node(model, [](onnx::NodeProto&) {});
  EXPECT_EQ(model.SerializeAsString(), before);
  for_each_tensor(model, [](onnx::TensorProto& tensor) { tensor.set_name("renamed"); });
  for_each_tensor(std::as_const(model), [](const onnx::TensorProto& tensor) { EXPECT_EQ(tensor.name(), "renamed"); });
}

TEST(ModelWalk, DeepNestingNeedsNoStack) {
  onnx::ModelProto model;
  // Built from the inside: Swap moves, so nothing recurses.
  onnx::GraphProto graph;
  for (int i = 0; i < 1000; ++i) {
    onnx::GraphProto outer;
    outer.add_node()->add_attribute()->mutable_g()->Swap(&graph);
    graph.Swap(&outer);
  }
  model.mutable_graph()->Swap(&graph);
  int graphs = 0;
  for_each_graph(std::as_const(model), [&graphs](const onnx::GraphProto&) { ++graphs; });
  EXPECT_EQ(graphs, 1001);
}

}  // namespace
}  // namespace attn_opt
