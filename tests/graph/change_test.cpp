// link, take_over, set_input, declare, fresh names.
#include <gmock/gmock.h>

#include "tests/text_model.h"

namespace attn_opt {
namespace {

/// A node OP of INPUTS that makes OUTPUT and stands before ANCHOR.
Node& insert(ModelGraph& view, Node& anchor, const std::string& op, std::vector<Value*> inputs, const std::string& output) {
  Node& node = *view.new_node(*anchor.graph);
  node.proto->set_op_type(op);
  node.inputs.assign(inputs.begin(), inputs.end());
  Value* made = view.new_value(*anchor.graph, output);
  made->producer = &node;
  node.outputs = {made};
  view.link(node, anchor);
  return node;
}

constexpr const char* kChain = "(float[4] x) => (float[4] y, float[4] z) { a = Abs (x) b = Exp (a) y = Neg (b) z = Relu (b) }";

TEST(Change, NewNodesStandBeforeTheirAnchorInTheOrderOfLinking) {
  Viewed viewed(kChain);
  insert(*viewed.view, viewed.maker("y"), "Sin", {&viewed.value("b")}, "s1");
  insert(*viewed.view, viewed.maker("b"), "Cos", {&viewed.value("a")}, "c");
  insert(*viewed.view, viewed.maker("y"), "Tan", {viewed.view->main().find("s1")}, "s2");
  EXPECT_EQ(viewed.nodes(), "Abs:a Exp:b Neg:y Relu:z") << "until compact()";
  viewed.view->compact();
  EXPECT_EQ(viewed.nodes(), "Abs:a Cos:c Exp:b Sin:s1 Tan:s2 Neg:y Relu:z");
  EXPECT_EQ(viewed.proto.graph().node(4).input(0), "s1");
  for (size_t i = 0; i < 7; ++i) {
    const Node& node = *viewed.view->main().nodes()[i];
    EXPECT_EQ(node.position, i);
    EXPECT_EQ(node.proto, &viewed.proto.graph().node(static_cast<int>(i)));
  }
}

TEST(Change, ASecondRoundOfChanges) {
  Viewed viewed(kChain);
  insert(*viewed.view, viewed.maker("b"), "Cos", {&viewed.value("a")}, "c");
  viewed.view->compact();
  insert(*viewed.view, viewed.maker("y"), "Sin", {&viewed.value("c")}, "s");
  viewed.view->compact();
  EXPECT_EQ(viewed.nodes(), "Abs:a Cos:c Exp:b Sin:s Neg:y Relu:z");
  EXPECT_TRUE(ModelGraph::create(viewed.proto).has_value());
}

TEST(Change, TakeOverKeepsNameReadersAndType) {
  Viewed viewed("(float[4] x) => (float[4] y) <float[4] b> { a = Abs (x) b = Exp (a) c = Sin (b) y = Add (b, c) }");
  Value& b = viewed.value("b");
  Node& exp = viewed.maker("b");
  Node& made = insert(*viewed.view, exp, "Cos", {&viewed.value("a")}, "made");
  viewed.view->declare(*made.outputs[0], *b.declared_type);
  viewed.view->take_over(b, made, 0);
  EXPECT_EQ(b.producer, &made);
  EXPECT_EQ(b.uses.size(), 2u);
  EXPECT_NE(b.declared_type, nullptr);
  EXPECT_EQ(viewed.view->main().find("made"), nullptr) << "the name that the new node had given";
  EXPECT_TRUE(exp.outputs[0]->unused());
  viewed.view->remove_if_dead(exp);
  viewed.view->compact();
  EXPECT_EQ(viewed.nodes(), "Abs:a Cos:b Sin:c Add:y");
  ASSERT_EQ(viewed.proto.graph().value_info_size(), 1) << "'made' is no value any more";
  EXPECT_EQ(viewed.proto.graph().value_info(0).name(), "b");
}

TEST(Change, TakeOverOfAGraphOutput) {
  Viewed viewed(kChain);
  Node& neg = viewed.maker("y");
  Node& made = insert(*viewed.view, neg, "Cos", {&viewed.value("a")}, "made");
  viewed.view->take_over(viewed.value("y"), made, 0);
  viewed.view->remove_if_dead(neg);
  viewed.view->compact();
  EXPECT_EQ(viewed.nodes(), "Abs:a Exp:b Cos:y Relu:z");
  EXPECT_TRUE(viewed.value("y").is_output);
}

/// A producer that stays for another of its outputs gets a name of its own for the one it lost.
TEST(Change, TakeOverOfOneOutputOfTwo) {
  Viewed viewed("(float[4] x) => (float[2] y, float[2] z) { y, z = Split <num_outputs = 2> (x) }");
  Node& split = viewed.maker("y");
  Node& made = insert(*viewed.view, split, "Cos", {&viewed.value("x")}, "made");
  viewed.view->take_over(viewed.value("y"), made, 0);
  viewed.view->remove_if_dead(split);
  viewed.view->compact();
  EXPECT_EQ(viewed.nodes(), "Cos:y Split:y_unfused");
  EXPECT_EQ(viewed.proto.graph().node(1).output(1), "z");
  EXPECT_TRUE(ModelGraph::create(viewed.proto).has_value());
}

TEST(Change, SetInputMovesTheUse) {
  Viewed viewed("(float[4] x) => (float[4] y) { a = Abs (x) b = Exp (x) c = Add (a, a) y = Add (a, c) }");
  Node& add = viewed.maker("c");
  viewed.view->set_input(add, 0, viewed.value("b"));
  EXPECT_EQ(viewed.value("a").uses.size(), 2u);
  ASSERT_EQ(viewed.value("b").uses.size(), 1u);
  EXPECT_EQ(viewed.value("b").uses[0].node, &add);
  EXPECT_EQ(add.proto->input(0), "b");
  viewed.view->set_input(add, 1, viewed.value("b"));
  viewed.view->set_input(viewed.maker("y"), 0, viewed.value("b"));
  EXPECT_TRUE(viewed.value("a").unused()) << "each use knew its place in the list";
}

TEST(Change, ReadsOfNewNodesAreUsesOnceTheyAreLinked) {
  Viewed viewed(kChain);
  Node& node = *viewed.view->new_node(viewed.view->main());
  node.inputs = {&viewed.value("x"), nullptr};
  EXPECT_EQ(viewed.value("x").uses.size(), 1u);
  viewed.view->link(node, viewed.maker("y"));
  EXPECT_EQ(viewed.value("x").uses.size(), 2u);
  EXPECT_EQ(node.proto->input(1), "");
}

TEST(Change, DeclareRecordsATypeOnce) {
  Viewed viewed(kChain);
  onnx::TypeProto type;
  type.mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT16);
  viewed.view->declare(viewed.value("a"), type);
  viewed.view->declare(viewed.value("a"), type);
  viewed.view->declare(viewed.value("y"), type);
  ASSERT_EQ(viewed.proto.graph().value_info_size(), 1) << "y has a type";
  EXPECT_EQ(viewed.value("a").declared_type, &viewed.proto.graph().value_info(0).type());
}

TEST(Change, FreshNamesAreOfNoNodeAndNoValueAnywhere) {
  auto model = model_of_graph(R"((float[4] x, bool c) => (float[4] y) <float[4] w = {1,2,3,4}> {
      y = If (c) <then_branch = t () => (float[4] inner) { inner = Exp (x) }, else_branch = e () => (float[4] x) { }> })");
  model.mutable_graph()->mutable_node(0)->set_name("branch");
  Viewed viewed(model);
  ModelGraph& view = *viewed.view;
  EXPECT_EQ(view.fresh_name("inner"), "inner_1");
  EXPECT_EQ(view.fresh_name("branch"), "branch_1");
  EXPECT_EQ(view.fresh_name("w"), "w_1");
  EXPECT_EQ(view.fresh_name("x"), "x_1");
  EXPECT_EQ(view.fresh_name("new"), "new");
  EXPECT_EQ(view.fresh_name("new"), "new_1");
  EXPECT_EQ(view.fresh_name("new_1"), "new_1_1") << "given out before";
  EXPECT_EQ(view.fresh_name("new"), "new_2");
}

}  // namespace
}  // namespace attn_opt
