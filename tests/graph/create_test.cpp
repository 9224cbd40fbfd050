// What the view shows of a model, and which models have none.
#include <gmock/gmock.h>

#include "tests/text_model.h"

namespace attn_opt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string error_of(onnx::ModelProto model) {
  const auto view = ModelGraph::create(model);
  return view ? "" : view.error().message();
}
std::string error_of(const std::string& graph) { return error_of(model_of_graph(graph)); }

/// "node.input": the readers of VALUE.
std::vector<std::string> readers(const Value& value) {
  std::vector<std::string> names;
  for (const Use& use : value.uses) names.push_back(use.node ? use.node->label() + "." + std::to_string(use.input) : "output");
  return names;
}

TEST(Create, ReadsThatNothingMakes) {
  EXPECT_THAT(error_of("(float[4] x) => (float[4] y) { y = Add (x, z) }"),
              HasSubstr("node 'y' (Add): 'z' is read but nothing makes it"));
}

TEST(Create, ReadsBeforeTheyAreMade) {
  EXPECT_THAT(error_of("(float[4] x) => (float[4] y) { y = Abs (z) z = Exp (x) }"), HasSubstr("'z' is read before it is made"));
  EXPECT_THAT(error_of("(float[4] x) => (float[4] y) { y = Abs (y) }"), HasSubstr("read before it is made"));
}

TEST(Create, NamesMadeTwice) {
  EXPECT_THAT(error_of("(float[4] x) => (float[4] y) { y = Abs (x) y = Exp (x) }"), HasSubstr("'y': is made twice"));
  EXPECT_THAT(error_of("(float[4] x) => (float[4] x) { x = Abs (x) }"), HasSubstr("'x': is made twice"));
  EXPECT_THAT(error_of("(float[4] x, float[4] x) => (float[4] y) { y = Abs (x) }"), HasSubstr("made twice"));
  EXPECT_THAT(error_of("(float[1] x) => (float[1] y) <float[1] c = {1}, float[1] c = {2}> { y = Add (x, c) }"),
              HasSubstr("'c': is made twice"));
}

TEST(Create, OutputsThatNothingMakes) {
  EXPECT_THAT(error_of("(float[4] x) => (float[4] z) { y = Abs (x) }"), HasSubstr("graph: output 'z' is made by no node"));
  EXPECT_THAT(error_of("(bool c) => (float[4] y) { y = If (c) <then_branch = t () => (float[4] p) { }, "
                       "else_branch = e () => (float[4] n) { }> }"),
              HasSubstr("body of 'y': output 'p' is made by no node"));
}

TEST(Create, ReadsInFunctionsSeeNothingOutside) {
  EXPECT_THAT(error_of(model_of_text(R"(<ir_version: 8, opset_import: ["": 18, "own": 1]>
      g (float[4] x) => (float[4] y) { y = own.F (x) }
      <domain: "own", opset_import: ["": 18]> F (a) => (b) { b = Add (a, x) })")),
              HasSubstr("'x' is read but nothing makes it"));
}

TEST(Create, BodiesNestedBeyondTheLimit) {
  onnx::ModelProto model = model_of_graph("(bool c) => (bool y) { y = Identity (c) }");
  onnx::GraphProto* graph = model.mutable_graph();
  for (int depth = 0; depth < 65; ++depth) {
    auto* node = graph->add_node();
    node->set_op_type("If");
    auto* attribute = node->add_attribute();
    attribute->set_name("then_branch");
    attribute->set_type(onnx::AttributeProto::GRAPH);
    graph = attribute->mutable_g();
  }
  const auto view = ModelGraph::create(model);
  ASSERT_FALSE(view.has_value());
  EXPECT_EQ(view.error().code, ErrorCode::kLimit);
}

TEST(Create, UsesAndProducers) {
  Viewed viewed("(float[4] x) => (float[4] y) <float[4] w = {1,2,3,4}> { a = Mul (x, x) y = Clip (a, , w) }");
  EXPECT_THAT(readers(viewed.value("x")), ElementsAre("a.0", "a.1"));
  EXPECT_THAT(readers(viewed.value("w")), ElementsAre("y.2"));
  EXPECT_EQ(viewed.maker("y").inputs[1], nullptr) << "an omitted input";
  EXPECT_EQ(viewed.value("a").producer, viewed.view->main().nodes()[0]);
  EXPECT_TRUE(viewed.value("y").is_output);
  EXPECT_FALSE(viewed.value("y").unused());
  EXPECT_TRUE(viewed.value("x").is_input);
  EXPECT_NE(viewed.value("w").initializer, nullptr);
  EXPECT_EQ(viewed.view->main().find("nowhere"), nullptr);
}

TEST(Create, CapturesAreUses) {
  Viewed viewed(R"((float[4] x, bool c) => (float[4] y) { a = Abs (x)
      y = If (c) <then_branch = t () => (float[4] p) { p = Exp (a) }, else_branch = e () => (float[4] a) { }> })");
  EXPECT_THAT(readers(viewed.value("a")), ElementsAre("p.0", "output"));
  const Node& branch = viewed.maker("y");
  ASSERT_EQ(branch.bodies.size(), 2u);
  const Graph& then_branch = *branch.bodies[0];
  EXPECT_EQ(then_branch.owner(), &branch);
  EXPECT_EQ(then_branch.parent(), &viewed.view->main());
  EXPECT_EQ(then_branch.find("a"), &viewed.value("a"));
  EXPECT_TRUE(then_branch.sees(viewed.value("a")));
  EXPECT_FALSE(viewed.view->main().sees(*then_branch.find("p")));
}

TEST(Create, AnInnerNameHidesTheOuterOne) {
  Viewed viewed(R"((float[4] x, bool c) => (float[4] y) { a = Abs (x)
      y = If (c) <then_branch = t () => (float[4] p) { a = Exp (x) p = Neg (a) },
                  else_branch = e () => (float[4] n) { n = Neg (a) }> })");
  EXPECT_THAT(readers(viewed.value("a")), ElementsAre("n.0"));
}

/// From IR version 4 on an initializer that is also an input is only its default; before it was a constant.
TEST(Create, InitializersThatTheCallerMayOverride) {
  for (int ir_version : {3, 4, 10}) {
    onnx::ModelProto model = model_of_graph("(float[1] x, float[1] w) => (float[1] y) { y = Add (x, w) }", 9, ir_version);
    auto& tensor = *model.mutable_graph()->add_initializer();
    tensor.set_name("w");
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    tensor.add_dims(1);
    tensor.add_float_data(1);
    Viewed viewed(model);
    EXPECT_TRUE(viewed.value("w").is_input);
    EXPECT_EQ(viewed.value("w").initializer != nullptr, ir_version < 4) << ir_version;
  }
}

TEST(Create, DeclaredTypes) {
  Viewed viewed("(float[4] x) => (float[4] y) <int64[2] a> { a = Cast <to = 7> (x) b = Abs (a) y = Cast <to = 1> (b) }");
  ASSERT_NE(viewed.value("a").declared_type, nullptr);
  EXPECT_EQ(viewed.value("a").declared_type->tensor_type().elem_type(), onnx::TensorProto::INT64);
  EXPECT_NE(viewed.value("x").declared_type, nullptr);
  EXPECT_NE(viewed.value("y").declared_type, nullptr);
  EXPECT_EQ(viewed.value("b").declared_type, nullptr);
}

TEST(Create, OpsetsOfGraphsAndFunctions) {
  Viewed viewed(model_of_text(R"(<ir_version: 8, opset_import: ["": 18, "own": 3]>
      g (float[4] x) => (float[4] y) { y = own.F (x) }
      <domain: "own", opset_import: ["": 15]> F (a) => (b) { b = Abs (a) })"));
  const Graph& function = *viewed.view->graphs()[1];
  EXPECT_EQ(viewed.view->opset(viewed.view->main()), 18);
  EXPECT_EQ(viewed.view->opset(viewed.view->main(), "own"), 3);
  EXPECT_EQ(viewed.view->opset(function), 15);
  EXPECT_EQ(viewed.view->opset(function, "own"), 0);
  EXPECT_NE(function.function(), nullptr);
}

TEST(Create, AttributesOfNodes) {
  Viewed viewed("(float[4] x) => (float[4] y) { y = own.Op <i = 3, f = 0.5, s = \"text\", l = [1, 2]> (x) }");
  Node& node = viewed.maker("y");
  EXPECT_EQ(node.int_attribute("i", 7), 3);
  EXPECT_EQ(node.int_attribute("absent", 7), 7);
  EXPECT_EQ(node.float_attribute("f", 1), 0.5f);
  EXPECT_EQ(node.string_attribute("s", ""), "text");
  EXPECT_THAT(*node.ints_attribute("l"), ElementsAre(1, 2));
  EXPECT_EQ(node.ints_attribute("absent"), nullptr);
  EXPECT_FALSE(node.is("Op")) << "of another domain";
  EXPECT_EQ(node.label(), "y") << "the first output's name in place of its own";
  node.proto->set_name("named");
  node.proto->set_domain("ai.onnx");
  EXPECT_EQ(node.label(), "named");
  EXPECT_TRUE(node.is("Op")) << "ai.onnx is the default domain";
}

}  // namespace
}  // namespace attn_opt
