// Removal of what an edit freed, and of nothing else.
#include <gmock/gmock.h>

#include "tests/text_model.h"

namespace attn_opt {
namespace {

/// Makes the graph output NAME a copy of INPUT, removes what that frees, and compacts.
void cut(Viewed& viewed, const std::string& name, const std::string& input) {
  ModelGraph& view = *viewed.view;
  Node& old = viewed.maker(name);
  Node& node = *view.new_node(*old.graph);
  node.proto->set_op_type("Identity");
  node.inputs = {&viewed.value(input)};
  node.outputs = {nullptr};
  view.link(node, old);
  view.take_over(viewed.value(name), node, 0);
  view.remove_if_dead(old);
  view.compact();
}

std::vector<std::string> names(const auto& field) {
  std::vector<std::string> all;
  for (const auto& element : field) all.push_back(element.name());
  return all;
}

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Remove, WhatOnlyTheDeadNodeRead) {
  Viewed viewed(
      R"((float[1] x) => (float[1] y, float[1] z) <float[1] w = {1}, float[1] shared = {2}, float[1] a, float[1] kept> {
      kept = Abs (x) a = Add (kept, w) b = Mul (a, shared) y = Neg (b) z = Mul (kept, shared) })");
  cut(viewed, "y", "x");
  EXPECT_EQ(viewed.nodes(), "Abs:kept Identity:y Mul:z");
  EXPECT_THAT(names(viewed.proto.graph().initializer()), ElementsAre("shared"));
  EXPECT_THAT(names(viewed.proto.graph().value_info()), ElementsAre("kept"));
}

TEST(Remove, NotWhatIsStillRead) {
  Viewed viewed("(float[1] x) => (float[1] y) { a = Abs (x) y = Neg (a) }");
  viewed.view->remove_if_dead(viewed.maker("a"));
  viewed.view->remove_if_dead(viewed.maker("y"));
  viewed.view->compact();
  EXPECT_EQ(viewed.nodes(), "Abs:a Neg:y");
}

TEST(Remove, NotWhatWasDeadBefore) {
  Viewed viewed(R"((float[1] x) => (float[1] y) <float[1] w = {1}, float[1] unread = {1}> {
      dead = Add (x, w) a = Abs (x) half_dead = Exp (a) y = Neg (a) })");
  cut(viewed, "y", "x");
  EXPECT_EQ(viewed.nodes(), "Add:dead Abs:a Exp:half_dead Identity:y");
  EXPECT_THAT(names(viewed.proto.graph().initializer()), ElementsAre("w", "unread"));
}

TEST(RemoveDead, WithWhatOnlyTheyRead) {
  Viewed viewed(R"((float[1] x) => (float[1] y) <float[1] w = {1}, float[1] unread = {1}> {
      dead = Add (x, w) a = Abs (x) half_dead = Exp (a) deader = Neg (half_dead) b = Sin (x) shape = Shape (b) y = Neg (b) })");
  viewed.view->remove_dead();
  EXPECT_TRUE(viewed.view->check());
  viewed.view->compact();
  EXPECT_EQ(viewed.nodes(), "Sin:b Neg:y");
  EXPECT_THAT(names(viewed.proto.graph().initializer()), ElementsAre("unread"));
}

TEST(RemoveDead, InBodiesAndNotTheNodesThatHoldThem) {
  Viewed viewed(R"((float[1] x, bool c) => (float[1] y) {
      a = Abs (x) y = Neg (x)
      z = If (c) <then_branch = t () => (float[1] p) { q = Exp (a) p = Sin (a) }, else_branch = e () => (float[1] x) { }> })");
  const Node& dead = *viewed.maker("z").bodies[0]->find("q")->producer;
  viewed.view->remove_dead();
  EXPECT_TRUE(viewed.view->check());
  EXPECT_TRUE(dead.removed);
  viewed.view->compact();
  EXPECT_EQ(viewed.nodes(), "Abs:a Neg:y If:z");
}

TEST(RemoveDead, NotOperatorsOfOthers) {
  Viewed viewed("(float[1] x) => (float[1] y) { a = Abs (x) b = others.Print (a) y = Neg (x) }");
  viewed.view->remove_dead();
  viewed.view->compact();
  EXPECT_EQ(viewed.nodes(), "Abs:a Print:b Neg:y");
}

TEST(RemoveDead, NotOperatorsOfOthersThatDeadOnesRead) {
  Viewed viewed("(float[1] x) => (float[1] y) { a = Abs (x) b = others.Print (a) c = Exp (b) y = Neg (x) }");
  viewed.view->remove_dead();
  EXPECT_TRUE(viewed.view->check());
  viewed.view->compact();
  EXPECT_EQ(viewed.nodes(), "Abs:a Print:b Neg:y");
}

TEST(Remove, ANodeThatReadsOneValueTwice) {
  Viewed viewed("(float[1] x) => (float[1] y) { a = Abs (x) b = Mul (a, a) c = Add (b, a) y = Neg (c) }");
  cut(viewed, "y", "x");
  EXPECT_EQ(viewed.nodes(), "Identity:y");
}

TEST(Remove, NotInitializersThatAreInputs) {
  auto model = model_of_graph("(float[1] x, float[1] w) => (float[1] y) { y = Add (x, w) }", 9, 3);
  auto& tensor = *model.mutable_graph()->add_initializer();
  tensor.set_name("w");
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.add_dims(1);
  tensor.add_float_data(1);
  Viewed viewed(model);
  cut(viewed, "y", "x");
  EXPECT_THAT(names(viewed.proto.graph().initializer()), ElementsAre("w"));
}

TEST(Remove, NotInitializersThatAnAnnotationNames) {
  auto model = model_of_graph(
      "(float[1] x) => (float[1] y) <float[1] scale = {1}, float[1] other = {1}> { a = Mul (x, scale) y = Add (a, other) }");
  auto& annotation = *model.mutable_graph()->add_quantization_annotation();
  annotation.set_tensor_name("y");
  auto& parameter = *annotation.add_quant_parameter_tensor_names();
  parameter.set_key("SCALE_TENSOR");
  parameter.set_value("scale");
  Viewed viewed(model);
  cut(viewed, "y", "x");
  EXPECT_THAT(names(viewed.proto.graph().initializer()), ElementsAre("scale"));
}

constexpr const char* kBranch = R"((float[1] x, bool c) => (float[1] y, float[1] z) <float[1] w = {1}> {
    a = Abs (x) b = Exp (x) k = Sin (x)
    y = If (c) <then_branch = t () => (float[1] p) <float[1] i = {3}> { q = Add (a, w) p = Add (q, i) },
                else_branch = e () => (float[1] b) { }>
    z = Neg (k) })";

TEST(Remove, WhatABodyCaptured) {
  Viewed viewed(kBranch);
  cut(viewed, "y", "x");
  EXPECT_EQ(viewed.nodes(), "Sin:k Identity:y Neg:z");
  EXPECT_THAT(viewed.proto.graph().initializer(), IsEmpty());
}

TEST(Remove, InsideABodyAlone) {
  Viewed viewed(kBranch);
  Graph& body = *viewed.maker("y").bodies[0];
  ModelGraph& view = *viewed.view;
  view.set_input(*body.find("p")->producer, 0, viewed.value("x"));
  view.remove_if_dead(*body.find("q")->producer);
  view.compact();
  EXPECT_EQ(viewed.nodes(), "Exp:b Sin:k If:y Neg:z") << "a and w were read by q alone";
  EXPECT_EQ(spelled(*body.proto()), "Add:p");
  EXPECT_THAT(names(body.proto()->initializer()), ElementsAre("i"));
  EXPECT_THAT(viewed.proto.graph().initializer(), IsEmpty());
}

/// What an edit had put into a body goes with the body.
TEST(Remove, NodesThatWereAddedToABody) {
  Viewed viewed(kBranch);
  ModelGraph& view = *viewed.view;
  Node& inner = *viewed.maker("y").bodies[0]->find("p")->producer;
  Node& added = *view.new_node(*inner.graph);
  added.proto->set_op_type("Cos");
  added.inputs = {&viewed.value("k")};
  view.link(added, inner);
  view.set_input(viewed.maker("z"), 0, viewed.value("x"));
  cut(viewed, "y", "x");
  EXPECT_EQ(viewed.nodes(), "Identity:y Neg:z") << "k was read by the added node alone";
}

/// Branches may use one name each for values of their own.
TEST(Remove, NamesOfOtherGraphsAreNotMeant) {
  auto model = model_of_graph(R"((float[1] x, bool c) => (float[1] y) {
      y = If (c) <then_branch = t () => (float[1] p) <float[1] q> { q = Abs (x) p = Neg (q) },
                  else_branch = e () => (float[1] n) <float[1] q> { q = Exp (x) u = Sin (x) n = Neg (q) }> })");
  Viewed viewed(model);
  ModelGraph& view = *viewed.view;
  Node& owner = viewed.maker("y");
  Graph &then_branch = *owner.bodies[0], &else_branch = *owner.bodies[1];
  view.set_input(*then_branch.find("p")->producer, 0, viewed.value("x"));
  view.remove_if_dead(*then_branch.find("q")->producer);
  view.remove_if_dead(*else_branch.find("u")->producer);
  view.compact();
  EXPECT_EQ(spelled(*then_branch.proto()), "Neg:p");
  EXPECT_THAT(then_branch.proto()->value_info(), IsEmpty());
  EXPECT_EQ(spelled(*else_branch.proto()), "Exp:q Neg:n");
  EXPECT_THAT(names(else_branch.proto()->value_info()), ElementsAre("q"));
}

TEST(Remove, NodesLiveOnAsTombstones) {
  Viewed viewed("(float[1] x) => (float[1] y) { a = Abs (x) y = Neg (a) }");
  Node& abs = viewed.maker("a");
  cut(viewed, "y", "x");
  EXPECT_TRUE(abs.removed);
  EXPECT_EQ(abs.id, 0u);
  EXPECT_EQ(viewed.maker("y").id, 2u) << "ids are not used again";
}

TEST(Compact, KeepsTheBytesWhereNothingChanged) {
  onnx::ModelProto model = model_of_graph(kBranch);
  model.set_producer_name("maker");
  model.mutable_graph()->add_quantization_annotation()->set_tensor_name("a");
  Viewed viewed(model);
  viewed.view->compact();
  EXPECT_EQ(viewed.proto.SerializeAsString(), model.SerializeAsString());
}

TEST(Compact, KeepsUnknownFieldsOfNodesThatStay) {
  onnx::ModelProto model = model_of_graph(kBranch);
  auto& node = *model.mutable_graph()->mutable_node(2);
  node.GetReflection()->MutableUnknownFields(&node)->AddVarint(12345, 678);
  const std::string before = node.SerializeAsString();
  Viewed viewed(model);
  cut(viewed, "y", "x");
  EXPECT_EQ(viewed.proto.graph().node(0).SerializeAsString(), before);
}

TEST(Remove, LongChains) {
  constexpr int kLength = 100'000;
  onnx::ModelProto model = model_of_graph("(float[1] x) => (float[1] y) { }");
  auto& graph = *model.mutable_graph();
  for (int i = 0; i <= kLength; ++i) {
    auto& node = *graph.add_node();
    node.set_op_type("Abs");
    node.add_input(i ? "v" + std::to_string(i - 1) : "x");
    node.add_output(i < kLength ? "v" + std::to_string(i) : "y");
  }
  Viewed viewed(std::move(model));
  cut(viewed, "y", "x");
  EXPECT_EQ(viewed.nodes(), "Identity:y");
}

}  // namespace
}  // namespace attn_opt
