// What must outlive a raise: everything that is not converted, and the names, types and metadata of what is.
#include <onnx/checker.h>

#include "attn_opt/graph_builder.h"
#include "tests/opset/raise_test.h"

namespace attn_opt {
namespace {

constexpr const char* kBranches = R"(<ir_version: 8, opset_import: ["" : 12]>
  g (float[2,3] x, bool c) => (float[3] y) {
    y = If (c) <then_branch = t () => (float[3] p) { s = ReduceSum <axes = [0]> (x) p = Squeeze <axes = [0]> (s) },
                else_branch = e () => (float[3] n) { n = ReduceMax <axes = [0], keepdims = 0> (x) }>
  })";

TEST(Survival, BodiesAreConvertedInPlace) {
  const auto before = parse_model(kBranches);
  const Raised raised = raise_model(before);
  ASSERT_EQ(raised.miss, "");
  EXPECT_EQ(raised.converted, 3);
  EXPECT_EQ(operators(raised.model), "If");
  const auto& branch = raised.model.graph().node(0).attribute(0).g();
  ASSERT_EQ(branch.node_size(), 3) << "one constant for both axes";
  EXPECT_EQ(branch.node(2).output(0), "p");
  expect_equal(before, raised.model);
}

TEST(Survival, FunctionsAreRaisedFromTheirOwnOpset) {
  const auto before = parse_model(R"(<ir_version: 8, opset_import: ["" : 17, "own" : 1, "other" : 3]>
      g (float[2,3] x) => (float[2,1] y) { y = own.F (x) }
      <domain: "own", opset_import: ["" : 17]> F (a) => (b) { b = ReduceMean <axes = [1]> (a) })");
  const Raised raised = raise_model(before);
  ASSERT_EQ(raised.miss, "");
  EXPECT_EQ(raised.converted, 1);
  ASSERT_EQ(raised.model.functions_size(), 1);
  EXPECT_EQ(raised.model.functions(0).opset_import(0).version(), 24);
  EXPECT_EQ(raised.model.functions(0).node_size(), 2);
  EXPECT_EQ(opset_version(raised.model, "own"), 1);
  EXPECT_EQ(opset_version(raised.model, "other"), 3);
  expect_equal(before, raised.model);
}

void add_property(google::protobuf::RepeatedPtrField<onnx::StringStringEntryProto>& properties, const char* key) {
  auto& property = *properties.Add();
  property.set_key(key);
  property.set_value("kept");
}

/// As if a later version of ONNX had written MESSAGE.
void add_unknown_field(google::protobuf::Message& message) {
  message.GetReflection()->MutableUnknownFields(&message)->AddVarint(9999, 7);
}

onnx::ModelProto decorated_model() {
  auto model = parse_graph(12, R"((float[2,3] x) => (float[2,3] y)
      { a = Abs (x) r = ReduceSum <axes = [1]> (a) d = Add (a, r) z = other.Op <k = 3> (d, sparse) y = Exp (z) })");
  model.add_opset_import()->set_domain("other");
  model.mutable_opset_import(1)->set_version(7);
  model.set_producer_name("maker");
  add_property(*model.mutable_metadata_props(), "of model");
  auto& graph = *model.mutable_graph();
  add_property(*graph.mutable_metadata_props(), "of graph");
  for (auto& node : *graph.mutable_node()) {
    node.set_name("node/" + node.op_type());
    node.set_doc_string("about " + node.op_type());
    add_property(*node.mutable_metadata_props(), "of node");
  }
  auto& sparse = *graph.add_sparse_initializer();
  sparse.mutable_values()->set_name("sparse");
  sparse.mutable_values()->set_data_type(onnx::TensorProto::FLOAT);
  auto* info = graph.add_value_info();
  info->set_name("r");
  info->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  graph.add_quantization_annotation()->set_tensor_name("a");
  graph.set_doc_string("about the graph");
  auto& function = *model.add_functions();
  function.set_domain("other");
  function.set_name("Own");
  function.set_doc_string("imports nothing of ai.onnx");
  *function.add_opset_import() = model.opset_import(1);
  *function.add_node() = graph.node(3);
  *function.mutable_input() = graph.node(3).input();
  *function.mutable_output() = graph.node(3).output();
  for (google::protobuf::Message* message :
       std::initializer_list<google::protobuf::Message*>{&model, &graph, &function, info, &sparse, graph.mutable_node(1),
                                                         graph.mutable_node(3), graph.mutable_node(3)->mutable_attribute(0)}) {
    add_unknown_field(*message);
  }
  return model;
}

TEST(Survival, AllButTheConvertedNode) {
  const auto before = decorated_model();
  const Raised raised = raise_model(before);
  ASSERT_EQ(raised.miss, "");
  ASSERT_EQ(operators(raised.model), "Abs Constant ReduceSum Add Op Exp");
  const onnx::NodeProto& converted = raised.model.graph().node(2);
  EXPECT_EQ(converted.name(), "node/ReduceSum");
  EXPECT_EQ(converted.doc_string(), "about ReduceSum");
  EXPECT_EQ(converted.metadata_props_size(), 1);
  EXPECT_EQ(converted.output(0), "r");
  EXPECT_EQ(converted.attribute_size(), 0);
  EXPECT_EQ(converted.GetReflection()->GetUnknownFields(converted).field_count(), 1);

  onnx::ModelProto expected = before;
  expected.set_ir_version(12);
  expected.mutable_opset_import(0)->set_version(24);
  *expected.mutable_graph()->mutable_node() = raised.model.graph().node();
  EXPECT_EQ(expected.SerializeAsString(), raised.model.SerializeAsString());
  for (const int kept : {0, 3, 4, 5}) {
    const auto& old = before.graph().node(kept < 2 ? kept : kept - 1);
    EXPECT_EQ(raised.model.graph().node(kept).SerializeAsString(), old.SerializeAsString());
  }
}

TEST(Survival, NothingOfAModelThatIsThereChanges) {
  for (const int opset : {24, 25}) {
    const auto before = parse_graph(opset, "(float[2] x) => (float[2] y) { y = Softmax (x) }");
    EXPECT_EQ(raise_model(before).model.SerializeAsString(), before.SerializeAsString());
  }
}

/// What stands for a node that becomes several has all of it but operator, attributes, inputs and outputs.
TEST(Survival, NodesThatAreReplaced) {
  auto before = parse_graph(11, "(float[2,3,4] x) => (float[2,3,4] y) { y = Softmax <axis = 1> (x) }");
  auto& node = *before.mutable_graph()->mutable_node(0);
  node.set_name("node/Softmax");
  node.set_doc_string("about Softmax");
  node.add_device_configurations()->set_configuration_id("two devices");
  add_property(*node.mutable_metadata_props(), "of node");
  add_unknown_field(node);
  const Raised raised = raise_model(before);
  ASSERT_EQ(operators(raised.model), "Shape Flatten Softmax Reshape");
  onnx::NodeProto expected = node;
  const onnx::NodeProto& after = raised.model.graph().node(2);
  expected.set_input(0, after.input(0));
  expected.set_output(0, after.output(0));
  expected.mutable_attribute(0)->set_i(-1);
  EXPECT_EQ(after.SerializeAsString(), expected.SerializeAsString());
}

/// Initializers that are inputs were constants before IR version 4, and would no longer be.
TEST(Survival, ConstantsOfOldModels) {
  auto before = parse_model(R"(<ir_version: 3, opset_import: ["" : 8]>
      g (float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 2}> { y = Add (x, w) })");
  const auto* weights = before.mutable_graph()->initializer_size() ? &before.graph().initializer(0) : nullptr;
  ASSERT_NE(weights, nullptr);
  const Raised raised = raise_model(before);
  ASSERT_EQ(raised.miss, "");
  ASSERT_EQ(raised.model.graph().input_size(), 1);
  EXPECT_EQ(raised.model.graph().initializer_size(), 1);
  expect_equal(before, raised.model);
}

TEST(Survival, NodesRemovedSincePlanningAreLeftOut) {
  auto model =
      parse_graph(12, "(float[2,3] x) => (float[2,3] y) { a = ReduceSum <axes = [1]> (x) b = Abs (x) y = Add (a, b) }");
  auto view = *ModelGraph::create(model);
  Facts facts(*view, inline_tensors());
  auto plan = plan_raise(*view, facts, 24);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->converted(), 1);
  const auto& nodes = view->main().nodes();
  view->set_input(*nodes[2], 0, *nodes[1]->outputs[0]);
  view->remove_if_dead(*nodes[0]);
  plan->apply(*view);
  view->compact();
  EXPECT_EQ(operators(model), "Abs Add");
  EXPECT_EQ(opset_version(model), 24);
  onnx::checker::check_model(model, true);
}

TEST(Survival, LongModelsTakeLinearTime) {
  constexpr int kNodes = 20'000;
  GraphBuilder build({.opset = 12});
  Value* sum = build.input("x", onnx::TensorProto::FLOAT, {2, 3});
  for (int i = 0; i < kNodes; ++i) sum = build.node("ReduceSum", {sum}, {{"axes", {1}}});
  build.output("y", sum);
  const Raised raised = raise_model(build.model()->proto);
  EXPECT_EQ(raised.miss, "");
  EXPECT_EQ(raised.converted, kNodes);
  EXPECT_EQ(raised.model.graph().node_size(), kNodes + 1) << "all share one constant";
}

}  // namespace
}  // namespace attn_opt
