// What GraphBuilder makes, and what it does not make twice.
#include <gmock/gmock.h>

#include "tests/rewrite/edit_case.h"

namespace attn_opt {
namespace {

using Builder = GraphBuilder;
using ::testing::ElementsAre;

TEST(GraphBuilder, TheSameNodeIsMadeOnce) {
  EditCase c("(float[4] x) => (float[4] y) { a = Abs (x) y = Neg (a) }");
  Edit edit = c.edit("y");
  Builder build(edit, c.shared, "site");
  Value *x = &c.value("x"), *a = &c.value("a");
  Value* sum = build.node("Add", {x, a});
  EXPECT_EQ(build.node("Add", {x, a}), sum);
  EXPECT_NE(build.node("Add", {a, x}), sum);
  EXPECT_NE(build.node("Mul", {x, a}), sum);
  Value* cast = build.node("Cast", {x}, {Builder::attribute("to", int64_t{1})});
  EXPECT_EQ(build.node("Cast", {x}, {Builder::attribute("to", int64_t{1})}), cast);
  EXPECT_NE(build.node("Cast", {x}, {Builder::attribute("to", int64_t{10})}), cast);
  EXPECT_EQ(edit.nodes().size(), 5u);
}

TEST(GraphBuilder, ConstantsAreSharedByTheirBytes) {
  EditCase c("(float[4] x) => (float[4] y) { y = Neg (x) }");
  Edit edit = c.edit("y");
  Builder build(edit, c.shared, "site");
  EXPECT_EQ(build.ints({1, 2}), build.ints({1, 2}));
  EXPECT_NE(build.ints({1, 2}), build.ints({2, 1}));
  EXPECT_NE(build.ints({}), build.ints({0}));
  EXPECT_EQ(build.scalar(0.5, onnx::TensorProto::FLOAT16), build.scalar(0.5, onnx::TensorProto::FLOAT16));
  EXPECT_NE(build.scalar(0.5, onnx::TensorProto::FLOAT16), build.scalar(0.5, onnx::TensorProto::FLOAT));
  EXPECT_NE(build.scalar(0.0, onnx::TensorProto::FLOAT), build.scalar(-0.0, onnx::TensorProto::FLOAT));
}

/// A name may hold any character, also the one that could stand between two names.
TEST(GraphBuilder, NamesDoNotRunIntoEachOther) {
  onnx::ModelProto model = model_of_graph("(float[4] a, float[4] b, float[4] c) => (float[4] y) { y = Neg (a) }");
  model.mutable_graph()->mutable_input(2)->set_name("a\nb");
  EditCase c(std::move(model));
  Edit edit = c.edit("y");
  Builder build(edit, c.shared, "site");
  EXPECT_NE(build.node("Concat", {&c.value("a"), &c.value("b")}), build.node("Concat", {&c.value("a\nb")}));
}

TEST(GraphBuilder, NodesOfManyOutputsAreNeverShared) {
  EditCase c("(float[4] x) => (float[4] y) { y = Neg (x) }");
  Edit edit = c.edit("y");
  Builder build(edit, c.shared, "site");
  Node* one = build.new_node("TopK", {&c.value("x"), nullptr}, {true, false, true}, {});
  Node* other = build.new_node("TopK", {&c.value("x"), nullptr}, {true, false, true}, {});
  EXPECT_NE(one, other);
  ASSERT_EQ(one->outputs.size(), 3u);
  EXPECT_EQ(one->outputs[1], nullptr);
  EXPECT_EQ(one->outputs[2]->producer, one);
  EXPECT_EQ(one->outputs[2]->output, 2);
  EXPECT_NE(one->outputs[0]->name, other->outputs[0]->name);
}

TEST(GraphBuilder, SpellsAttributesAndSizes) {
  EditCase c("(float[4] x) => (float[4] y) { y = Neg (x) }");
  Edit edit = c.edit("y");
  Builder build(edit, c.shared, "site");
  Node& shape = *build.shape(c.value("x"), 1, 3)->producer;
  EXPECT_EQ(shape.op(), "Shape");
  EXPECT_EQ(shape.int_attribute("start", 0), 1);
  EXPECT_EQ(shape.int_attribute("end", 0), 3);
  EXPECT_THAT(shape.proto->name(), ::testing::StartsWith("site/Shape"));
  EXPECT_EQ(Builder::attribute("f", 0.5f).f(), 0.5f);
  EXPECT_EQ(Builder::attribute("f", 0.5f).type(), onnx::AttributeProto::FLOAT);
  EXPECT_THAT(Builder::attribute("l", std::vector<int64_t>{3, 4}).ints(), ElementsAre(3, 4));
}

TEST(SharedNodes, WhatOneEditMadeServesTheNext) {
  EditCase c("(float[4] x) => (float[4] y, float[4] z) { y = Neg (x) z = Relu (x) }");
  c.replace("y", "Exp");
  Edit edit = c.edit("z");
  Builder build(edit, c.shared, "site");
  Value* abs = build.node("Abs", {&c.value("x")});
  EXPECT_TRUE(edit.nodes().empty()) << "replace() has made an Abs of x";
  edit.take_over(c.value("z"), *build.node("Cos", {abs}));
  edit.commit(c.shared);
  EXPECT_EQ(c.compacted(), "Abs:site/Abs_output Exp:y Cos:z");
}

/// The taken-over value stands for the one that the edit had made.
TEST(SharedNodes, WhatTookOverAValue) {
  EditCase c("(float[4] x) => (float[4] y, float[4] z) { y = Neg (x) z = Relu (x) }");
  c.replace("y", "Exp");
  Edit edit = c.edit("z");
  Builder build(edit, c.shared, "site");
  EXPECT_EQ(build.node("Exp", {build.node("Abs", {&c.value("x")})}), &c.value("y"));
}

/// What was made for a description bears the name of the model's value once an edit has given it that.
TEST(SharedNodes, WhatWasTakenOverSince) {
  EditCase c("(float[4] x) => (float[4] y, float[4] z) { y = Neg (x) z = Relu (x) }");
  SharedNodes unplaced;
  Edit draft = c.edit("y");
  Value* abs = Builder(draft, unplaced, "draft").node("Abs", {&c.value("x")});
  draft.enter(unplaced);
  Edit first = c.edit("y");
  first.take_over(c.value("y"), *abs);
  first.adopt_unplaced();
  first.commit(c.shared);
  Edit second = c.edit("z");
  EXPECT_EQ(Builder(second, unplaced, "draft").node("Abs", {&c.value("x")}), &c.value("y"));
}

TEST(SharedNodes, NotBelowTheReader) {
  EditCase c("(float[4] x) => (float[4] y, float[4] z) { z = Relu (x) y = Neg (x) }");
  c.replace("y", "Exp");
  c.replace("z", "Exp");
  EXPECT_EQ(c.compacted(), "Abs:site/Abs_1_output Exp:z Abs:site/Abs_output Exp:y");
}

TEST(SharedNodes, NotOfAnotherGraph) {
  EditCase c(R"((float[4] x, bool b) => (float[4] y, float[4] z) { y = Neg (x)
      z = If (b) <then_branch = t () => (float[4] p) { p = Relu (x) }, else_branch = e () => (float[4] n) { n = Sin (x) }> })");
  c.replace("y", "Exp");
  Node& inner = *c.value("z").producer->bodies[0]->find("p")->producer;
  Edit edit(*c.view, inner);
  Builder build(edit, c.shared, "site");
  build.node("Abs", {&c.value("x")});
  EXPECT_EQ(edit.nodes().size(), 1u);
}

TEST(SharedNodes, NotOnceTheyAreRemoved) {
  EditCase c("(float[4] x) => (float[4] y, float[4] z) { y = Neg (x) z = Relu (x) }");
  c.replace("y", "Exp");
  Edit edit = c.edit("y");
  Builder build(edit, c.shared, "site");
  edit.take_over(c.value("y"), *build.node("Cos", {&c.value("x")}));
  edit.commit(c.shared);
  c.replace("z", "Sin");
  EXPECT_EQ(c.compacted(), "Cos:y Abs:site/Abs_1_output Sin:z");
}

}  // namespace
}  // namespace attn_opt
