// GraphBuilder making models from nothing: what they hold. That they compute what they should is a test in Python.
#include <gmock/gmock.h>

#include "attn_opt/edit.h"
#include "tests/text_model.h"

namespace attn_opt {
namespace {

using P = onnx::TensorProto;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Of VALUE, or the error of BUILD.
AxisSizes sizes_of(const GraphBuilder& build, const Value* value) {
  EXPECT_TRUE(build.status().has_value()) << build.status().error().message();
  return GraphBuilder::sizes(*value).value_or(AxisSizes{"no rank"});
}

onnx::ModelProto built(const GraphBuilder& build) {
  auto model = build.model();
  EXPECT_TRUE(model.has_value()) << model.error().message();
  return model ? model->proto : onnx::ModelProto();
}

TEST(ModelBuilder, MakesAModelFromNothing) {
  GraphBuilder build({.opset = 21, .name = "softmax"});
  Value* x = build.input("x", P::FLOAT, {"batch", 4});
  Value* weight = build.initializer("w", Tensor::of<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}));
  build.output("y", build.node("Softmax", {build.node("MatMul", {x, weight})}, {{"axis", -1}}));
  build.set_metadata("author", "me");
  const onnx::ModelProto model = built(build);
  EXPECT_EQ(spelled(model.graph()), "MatMul:MatMul_output Softmax:y");
  EXPECT_EQ(model.graph().name(), "softmax");
  EXPECT_EQ(opset_version(model), 21);
  EXPECT_EQ(model.ir_version(), 10);
  EXPECT_EQ(model.metadata_props(0).value(), "me");
  EXPECT_EQ(model.graph().output(0).type().tensor_type().shape().dim(0).dim_param(), "batch");
  EXPECT_EQ(model.graph().initializer(0).name(), "w");
}

TEST(ModelBuilder, WritesTheFormsOfTheModelsOpset) {
  GraphBuilder build({.opset = 12});
  Value* x = build.input("x", P::FLOAT, {2, 1, 3});
  build.output("y", build.along("Squeeze", *x, {1}));
  build.output("sizes", build.shape(*x, 1, 3));
  EXPECT_EQ(spelled(built(build).graph()),
            "Squeeze:y Shape:Shape_output Constant:Constant_output Constant:Constant_1_output Slice:sizes");
  build.import_opset("", 15);
  EXPECT_EQ(build.shape(*x, 1, 3)->producer->op(), "Shape");
}

TEST(ModelBuilder, ValuesHaveTheirTypesAndSizes) {
  GraphBuilder build;
  Value* x = build.input("x", P::FLOAT, {"batch", "seq", 64});
  const Value* heads = build.node("Reshape", {x, build.ints({0, 0, 8, 8})});
  EXPECT_EQ(GraphBuilder::type(*heads), P::FLOAT);
  EXPECT_THAT(sizes_of(build, heads), ElementsAre("batch", "seq", 8, 8));
  // The contents of shapes are followed.
  Value* half = build.node("Concat", {build.shape(*x, 0, 2), build.ints({2, 32})}, {{"axis", 0}});
  EXPECT_THAT(sizes_of(build, build.node("Reshape", {x, half})), ElementsAre("batch", "seq", 2, 32));
  EXPECT_EQ(GraphBuilder::type(*build.node("Cast", {x}, {{"to", P::INT64}})), P::INT64);
  EXPECT_FALSE(GraphBuilder::sizes(*build.body().input("any", tensor_type(P::FLOAT))));
}

TEST(ModelBuilder, AttributesOfEveryKind) {
  GraphBuilder build;
  Value* x = build.input("x", P::FLOAT, {2, 3});
  const Node& node = *build.node("Transpose", {x}, {{"perm", {1, 0}}})->producer;
  EXPECT_THAT(node.attribute("perm")->ints(), ElementsAre(1, 0));
  EXPECT_EQ(Attribute("a", 0.5).proto().f(), 0.5F);
  EXPECT_EQ(Attribute("a", true).proto().i(), 1);
  EXPECT_EQ(Attribute("a", "text").proto().s(), "text");
  EXPECT_THAT(Attribute("a", {0.5F, 1.5F}).proto().floats(), ElementsAre(0.5F, 1.5F));
  EXPECT_THAT(Attribute("a", {"b", "c"}).proto().strings(), ElementsAre("b", "c"));
  EXPECT_EQ(Attribute("a", Tensor::scalar<int64_t>(3)).proto().t().dims_size(), 0);
  EXPECT_EQ(Attribute("a", tensor_type(P::INT8)).proto().tp().tensor_type().elem_type(), P::INT8);
  EXPECT_TRUE(build.status().has_value());
}

TEST(ModelBuilder, EqualNodesAreMadeOnceButForRandomOnes) {
  GraphBuilder build;
  Value* x = build.input("x", P::FLOAT, {2});
  EXPECT_EQ(build.node("Neg", {x}), build.node("Neg", {x}));
  EXPECT_NE(build.node("RandomNormalLike", {x}), build.node("RandomNormalLike", {x}));
  EXPECT_NE(build.constant(Tensor::of<std::string>({1}, {"a"})), build.constant(Tensor::of<std::string>({1}, {"b"})));
}

TEST(ModelBuilder, BodiesSeeWhatIsAroundThem) {
  GraphBuilder build({.opset = 21});
  Value* x = build.input("x", P::FLOAT, {"n"});
  Value* sum = build.node("Add", {x, x});
  GraphBuilder then_branch = build.body("then"), else_branch = build.body("else");
  then_branch.output("t", then_branch.node("Neg", {sum}));
  else_branch.output("e", sum);
  Value* chosen =
      build.node("If", {build.input("flag", P::BOOL, {})}, {{"then_branch", then_branch}, {"else_branch", else_branch}});
  EXPECT_THAT(sizes_of(build, chosen), ElementsAre("n"));
  build.output("sum", sum);  // after bodies have read it by another name
  build.output("y", chosen);
  const onnx::ModelProto model = built(build);
  EXPECT_EQ(spelled(model.graph()), "Add:sum If:y");
  EXPECT_EQ(model.graph().node(1).attribute(0).g().node(0).input(0), "sum");
  EXPECT_EQ(model.graph().node(1).attribute(1).g().node(0).op_type(), "Identity");
}

TEST(ModelBuilder, OutputsOfInputsAndOfOneValueTwice) {
  GraphBuilder build;
  Value* x = build.input("x", P::FLOAT, {2});
  Value* y = build.node("Neg", {x});
  build.output("same", x);
  build.output("y", y);
  build.output("z", y);
  EXPECT_EQ(spelled(built(build).graph()), "Neg:y Identity:same Identity:z");
}

TEST(ModelBuilder, FunctionsHaveParametersAndDefaults) {
  GraphBuilder build({.opset = 21});
  GraphBuilder scaled = build.function("acme", "Scaled", {{"offset", 1.0F}});
  Value* in = scaled.input("x");
  const auto number = [&](const char* parameter) {
    return scaled.node("Constant", {}, {Attribute::reference("value_float", parameter, onnx::AttributeProto::FLOAT)});
  };
  scaled.output("y", scaled.node("Add", {scaled.node("Mul", {in, number("factor")}), number("offset")}));
  Value* x = build.input("x", P::FLOAT, {"n", 3});
  Value* y = build.node("acme::Scaled", {x}, {{"factor", 2.0F}});
  EXPECT_THAT(sizes_of(build, y), ElementsAre("n", 3));
  build.output("y", y);
  const onnx::ModelProto model = built(build);
  ASSERT_EQ(model.functions_size(), 1);
  EXPECT_THAT(model.functions(0).input(), ElementsAre("x"));
  EXPECT_THAT(model.functions(0).output(), ElementsAre("y"));
  EXPECT_THAT(model.functions(0).attribute(), ElementsAre("factor"));
  EXPECT_EQ(model.functions(0).attribute_proto(0).name(), "offset");
  EXPECT_EQ(opset_version(model, "acme"), 1);
}

TEST(ModelBuilder, OperatorsOfOthersGetTheirTypesDeclared) {
  GraphBuilder build;
  build.import_opset("acme", 3);
  Value* y = build.node("acme::Fast", {build.input("x", P::FLOAT, {"n"})}, {{"mode", "quick"}});
  EXPECT_EQ(GraphBuilder::type(*y), P::UNDEFINED);
  build.declare(y, tensor_type(P::FLOAT16, {"n", 2}));
  build.output("y", build.node("Neg", {y}));
  const onnx::ModelProto model = built(build);
  EXPECT_EQ(model.graph().output(0).type().tensor_type().elem_type(), P::FLOAT16);
  EXPECT_EQ(opset_version(model, "acme"), 3);
}

TEST(ModelBuilder, CanGoOnAfterAModel) {
  GraphBuilder build;
  Value* x = build.input("x", P::FLOAT, {2});
  Value* y = build.output("y", build.node("Neg", {x}));
  EXPECT_EQ(built(build).graph().output_size(), 1);
  build.output("z", build.node("Abs", {y}));
  EXPECT_EQ(spelled(built(build).graph()), "Neg:y Abs:z");
}

TEST(ModelBuilder, OfAnEditMakesNodesOnly) {
  Viewed given("(float[4] x) => (float[4] y) { y = Neg (x) }");
  Edit edit(*given.view, given.maker("y"));
  SharedNodes shared;
  GraphBuilder build(edit, shared, "site");
  EXPECT_TRUE(build.status().has_value());
  EXPECT_EQ(build.input("x", P::FLOAT, {}), nullptr);
  EXPECT_THAT(build.model().error().message(), HasSubstr("only a builder of a model from nothing has it"));
}

}  // namespace
}  // namespace attn_opt
