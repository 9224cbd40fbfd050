// Edits: what they would remove, whether they keep order, and what they leave.
#include <gmock/gmock.h>

#include "tests/rewrite/edit_case.h"

namespace attn_opt {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr const char* kModel = R"((float[4] x) => (float[4] y, float[4] z) <float[4] w = {1, 2, 3, 4}> {
    a = Abs (x) b = Mul (a, w) c = Exp (b) d = Add (c, b) y = Neg (d) z = Relu (a) })";

std::vector<std::string> would_remove(const Edit& edit) {
  std::vector<std::string> labels;
  for (const Node* node : edit.would_remove()) labels.push_back(node->label());
  return labels;
}

TEST(Edit, ADroppedOneLeavesTheBytes) {
  EditCase c(kModel);
  const std::string before = c.proto.SerializeAsString();
  {
    Edit edit = c.edit("y");
    GraphBuilder build(edit, c.shared, "site");
    Value* made = build.node("Exp", {build.ints({1})});
    edit.take_over(c.value("y"), *made);
    edit.declare(*made, *c.value("y").declared_type);
    EXPECT_TRUE(edit.keeps_order(edit.would_remove()));
    EXPECT_EQ(edit.would_remove().size(), 4u);
  }
  c.view->compact();
  EXPECT_EQ(c.proto.SerializeAsString(), before);
  for (const Node* node : c.view->main().nodes()) EXPECT_FALSE(node->removed);
  EXPECT_EQ(c.value("x").uses.size(), 1u);
}

TEST(Edit, WouldRemoveTheConeAndNothingThatOthersRead) {
  EditCase c(kModel);
  Edit edit = c.edit("y");
  GraphBuilder build(edit, c.shared, "site");
  edit.take_over(c.value("y"), *build.node("Exp", {&c.value("x")}));
  EXPECT_THAT(would_remove(edit), UnorderedElementsAre("y", "d", "c", "b")) << "a is read by z";
}

TEST(Edit, WouldRemoveNothingThatItReads) {
  EditCase c(kModel);
  Edit edit = c.edit("y");
  GraphBuilder build(edit, c.shared, "site");
  edit.take_over(c.value("y"), *build.node("Exp", {&c.value("c")}));
  EXPECT_THAT(would_remove(edit), UnorderedElementsAre("y", "d"));
}

TEST(Edit, WouldRemoveWhatItRemoves) {
  EditCase c(kModel);
  Edit edit = c.edit("y");
  GraphBuilder build(edit, c.shared, "site");
  edit.take_over(c.value("y"), *build.node("Exp", {&c.value("b")}));
  const std::vector<Node*> foretold = edit.would_remove();
  edit.commit(c.shared);
  std::vector<Node*> removed;
  for (Node* node : c.view->main().nodes())
    if (node->removed) removed.push_back(node);
  EXPECT_THAT(foretold, ::testing::UnorderedElementsAreArray(removed));
  EXPECT_EQ(c.compacted(), "Abs:a Mul:b Exp:y Relu:z");
}

TEST(Edit, WouldRemoveNoNodeThatKeepsAnOutput) {
  EditCase c("(float[4] x) => (float[2] y, float[2] z) { y, z = Split <num_outputs = 2> (x) }");
  Edit edit = c.edit("y");
  GraphBuilder build(edit, c.shared, "site");
  edit.take_over(c.value("y"), *build.node("Exp", {&c.value("x")}));
  EXPECT_THAT(would_remove(edit), IsEmpty());
  edit.take_over(c.value("z"), *build.node("Cos", {&c.value("x")}));
  EXPECT_THAT(would_remove(edit), ElementsAre("y"));
}

TEST(Edit, TakesOverAGraphOutputThatIsReadToo) {
  EditCase c("(float[4] x) => (float[4] y, float[4] z) { y = Neg (x) z = Relu (y) }");
  c.replace("y", "Exp");
  EXPECT_EQ(c.compacted(), "Abs:site/Abs_output Exp:y Relu:z");
  EXPECT_TRUE(c.value("y").is_output);
  EXPECT_EQ(c.proto.graph().node(2).input(0), "y");
}

/// Nodes of the edit that read what takes over read it under its new name.
TEST(Edit, ItsOwnReadersFollowATakeover) {
  EditCase c("(float[4] x) => (float[4] y, float[4] z) { y = Neg (x) z = Relu (y) }");
  Edit edit = c.edit("y");
  GraphBuilder build(edit, c.shared, "site");
  Value* inner = build.node("Abs", {&c.value("x")});
  edit.take_over(c.value("y"), *inner);
  edit.take_over(c.value("z"), *build.node("Cos", {inner}));
  edit.commit(c.shared);
  EXPECT_EQ(c.compacted(), "Abs:y Cos:z");
  EXPECT_EQ(c.proto.graph().node(1).input(0), "y");
  EXPECT_TRUE(ModelGraph::create(c.proto).has_value());
}

TEST(Edit, DeclaresTypes) {
  EditCase c("(float[4] x) => (float[4] y) { y = Neg (x) }");
  Edit edit = c.edit("y");
  GraphBuilder build(edit, c.shared, "site");
  Value* inner = build.node("Abs", {&c.value("x")});
  Value* outer = build.node("Cos", {inner});
  edit.declare(*inner, *c.value("x").declared_type);
  edit.declare(*outer, *c.value("x").declared_type);
  edit.take_over(c.value("y"), *outer);
  edit.commit(c.shared);
  c.view->compact();
  ASSERT_EQ(c.proto.graph().value_info_size(), 1) << "y's type is declared with the outputs";
  EXPECT_EQ(c.proto.graph().value_info(0).name(), inner->name);
}

constexpr const char* kReaderAbove = R"((float[4] x) => (float[4] y, float[4] z) {
    early = Neg (x) z = Relu (early) y = Exp (x) })";

TEST(Edit, AReaderAboveTheAnchorBreaksTheOrder) {
  EditCase c(kReaderAbove);
  Edit edit = c.edit("y");
  GraphBuilder build(edit, c.shared, "site");
  edit.take_over(c.value("early"), *build.node("Cos", {&c.value("x")}));
  const Node* reader = nullptr;
  EXPECT_FALSE(edit.keeps_order(edit.would_remove(), &reader));
  EXPECT_EQ(reader, c.value("z").producer);
}

TEST(Edit, AReaderAboveThatGoesDoesNot) {
  EditCase c(kReaderAbove);
  Edit edit = c.edit("y");
  GraphBuilder build(edit, c.shared, "site");
  edit.take_over(c.value("early"), *build.node("Cos", {&c.value("x")}));
  edit.take_over(c.value("z"), *build.node("Sin", {&c.value("x")}));
  EXPECT_TRUE(edit.keeps_order(edit.would_remove()));
}

TEST(Edit, AReaderInABodyCountsWhereTheBodysNodeStands) {
  const std::string branches = R"(If (b) <then_branch = t () => (float[4] p) { p = Abs (v) },
      else_branch = e () => (float[4] n) { n = Sin (x) }>)";
  for (const bool above : {false, true}) {
    const std::string z = " z = " + branches, y = " y = Exp (x)";
    EditCase c("(float[4] x, bool b) => (float[4] y, float[4] z) { v = Neg (x)" + (above ? z + y : y + z) + " }");
    Edit edit = c.edit("y");
    GraphBuilder build(edit, c.shared, "site");
    edit.take_over(c.value("v"), *build.node("Cos", {&c.value("x")}));
    const Node* reader = nullptr;
    EXPECT_EQ(edit.keeps_order(edit.would_remove(), &reader), !above);
    EXPECT_EQ(reader ? reader->label() : "", above ? "p" : "");
  }
}

/// What an earlier edit put before the same anchor stands above what the next one puts there.
TEST(Edit, AReaderOfAnEarlierEditAtTheSameAnchor) {
  EditCase c("(float[4] x) => (float[4] y, float[4] z) { v = Neg (x) z = Relu (x) y = Exp (v) }");
  {
    Edit edit = c.edit("y");
    GraphBuilder build(edit, c.shared, "site");
    edit.take_over(c.value("z"), *build.node("Sin", {&c.value("v")}));
    edit.commit(c.shared);
  }
  Edit edit = c.edit("y");
  GraphBuilder build(edit, c.shared, "site");
  edit.take_over(c.value("v"), *build.node("Cos", {&c.value("x")}));
  const Node* reader = nullptr;
  EXPECT_FALSE(edit.keeps_order(edit.would_remove(), &reader));
  EXPECT_EQ(reader, c.value("z").producer);
}

TEST(Edit, LongConesTakeNoStack) {
  constexpr int kLength = 100'000;
  onnx::ModelProto model = model_of_graph("(float[1] x) => (float[1] y) { }");
  for (int i = 0; i <= kLength; ++i) {
    auto& node = *model.mutable_graph()->add_node();
    node.set_op_type("Add");
    for (int input = 0; input < 2; ++input) node.add_input(i ? "v" + std::to_string(i - 1) : "x");
    node.add_output(i < kLength ? "v" + std::to_string(i) : "y");
  }
  EditCase c(std::move(model));
  Edit edit = c.edit("y");
  GraphBuilder build(edit, c.shared, "site");
  edit.take_over(c.value("y"), *build.node("Abs", {&c.value("x")}));
  EXPECT_EQ(edit.would_remove().size(), kLength + 1u);
  EXPECT_TRUE(edit.keeps_order(edit.would_remove()));
  edit.commit(c.shared);
  EXPECT_EQ(c.compacted(), "Abs:y");
}

TEST(Edit, AdoptsTheUnplacedNodesItReadsInOrder) {
  EditCase c(kModel);
  SharedNodes unplaced;
  Edit draft = c.edit("d"), unused = c.edit("d");
  GraphBuilder sketch(draft, unplaced, "draft");
  Value* half = sketch.node("Sqrt", {sketch.node("Cos", {&c.value("x")})});
  GraphBuilder(unused, unplaced, "draft").node("Sin", {&c.value("x")});
  draft.enter(unplaced);

  Edit first = c.edit("d"), second = c.edit("z");
  GraphBuilder build(first, c.shared, "site"), again(second, c.shared, "site");
  first.take_over(c.value("d"), *build.node("Mul", {half, half}));
  Value* same = GraphBuilder(second, unplaced, "draft").node("Cos", {&c.value("x")});
  EXPECT_EQ(same, half->producer->inputs[0]) << "made once for all matches";
  second.take_over(c.value("z"), *again.node("Tan", {same}));
  for (Edit* edit : {&first, &second}) {
    edit->adopt_unplaced();
    edit->commit(c.shared);
  }
  EXPECT_EQ(c.compacted(), "Cos:draft/Cos_output Sqrt:draft/Sqrt_output Mul:d Neg:y Tan:z");
}

TEST(Edit, CommittingAddsTheFunctionsItsNodesCall) {
  EditCase c(kModel);
  onnx::FunctionProto function;
  function.set_domain("local");
  function.set_name("Twice");
  c.proto.set_ir_version(7);
  for (const auto& [name, input] : {std::pair("y", "x"), std::pair("z", "a")}) {
    Edit edit = c.edit(name);
    GraphBuilder build(edit, c.shared, "site");
    edit.add_function(function);
    edit.take_over(c.value(name), *build.node("local::Twice", {&c.value(input)}));
    edit.commit(c.shared);
  }
  EXPECT_EQ(c.proto.functions_size(), 1);
  EXPECT_EQ(c.proto.ir_version(), 8) << "the first that has functions";
  EXPECT_EQ(c.proto.opset_import(c.proto.opset_import_size() - 1).domain(), "local");
  EXPECT_EQ(c.value("y").producer->domain(), "local");
}

}  // namespace
}  // namespace attn_opt
