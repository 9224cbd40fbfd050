#include "attn_opt/facts.h"

#include <chrono>
#include <cmath>
#include <limits>

#include "tests/match/facts_case.h"

namespace attn_opt {
namespace {

constexpr double kLowest = std::numeric_limits<float>::lowest();

TEST(Facts, DeclaredShapesServeWhereNothingIsComputed) {
  FactsCase facts("(float[batch, 3, \"past + seq\"] x) => (float[n, 4] y) { y = other.Op(x) }");
  EXPECT_EQ(facts.shape("x"), "(batch, 3, past + seq)");
  EXPECT_EQ(facts.shape("y"), "(n, 4)");
  EXPECT_EQ(facts.facts->type(facts.value("y")), onnx::TensorProto::FLOAT);
}

TEST(Facts, SizesOfInputsBeatWhatIsDeclaredBehindThem) {
  FactsCase facts(
      "(float[b,s] x, int64[2] t) => (float[n, 9] y, float[m] z, float[k, 3] w) "
      "{ y = Neg(x) z = Flatten<axis=0>(x) w = Reshape(x, t) }");
  EXPECT_EQ(facts.shape("y"), "(b, s)") << "the 9 is of an input that was";
  EXPECT_EQ(facts.shape("z"), "(1, b*s)");
  EXPECT_EQ(facts.shape("w"), "(k, 3)");
}

TEST(Facts, UnnamedDimsAreUnknownsOfTheirOwn) {
  FactsCase facts("(float[?, ?] x, float[?, 2] z) => (y) { y = Identity(x) }");
  EXPECT_EQ(facts.shape("x"), "(?x.0, ?x.1)");
  EXPECT_EQ(facts.shape("z"), "(?z.0, 2)");
  EXPECT_EQ(facts.shape("y"), "(?x.0, ?x.1)");
}

TEST(Facts, PlaceholdersAreNoNames) {
  FactsCase facts(R"((float["-1", "?"] x, float["None", "*"] z, float["-1", "n-1"] u) => (y) { y = Identity(x) })");
  EXPECT_EQ(facts.shape("x"), "(?x.0, ?x.1)");
  EXPECT_EQ(facts.shape("z"), "(?z.0, ?z.1)");
  EXPECT_EQ(facts.shape("u"), "(?u.0, \"n-1\")");
}

TEST(Facts, AnOpenSizeKeepsItsNameBehindTheInput) {
  FactsCase facts("(float[?, 2] x) => (float[unk__0, 2] y, float[unk__1, 4] z) { y = Neg(x) z = Concat<axis = 1>(y, y) }");
  EXPECT_EQ(facts.shape("y"), "(?x.0, 2)");
  EXPECT_EQ(facts.shape("z"), "(?x.0, 4)");
}

TEST(Facts, AnInitializerThatTheCallerMayOverrideIsNoConstant) {
  FactsCase facts("(float[2] x = {1.0, 2.0}) => (y) <float[2] c = {1.0, 2.0}> { y = Add(x, c) }");
  EXPECT_EQ(facts.facts->constant(facts.value("x")), nullptr);
  EXPECT_EQ(facts.facts->constant(facts.value("y")), nullptr);
  EXPECT_NE(facts.facts->constant(facts.value("c")), nullptr);
}

TEST(Facts, ConstantsFold) {
  FactsCase facts(
      "(float[b] x) => (y) <float[2] c = {1.0, 4.0}, int64[1] k = {0}> "
      "{ r = Sqrt(c) u = Unsqueeze(r, k) i = CastLike(u, x) y = Mul(x, r) }");
  const Tensor* tensor = facts.facts->constant(facts.value("i"));
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->dims(), (Dims{1, 2}));
  EXPECT_EQ(tensor->data<float>()[1], 2.0f);
}

TEST(Facts, RandomNodesAreNotConstant) {
  FactsCase facts("(float[b] x) => (y) <float[2] c = {1.0, 4.0}> { r = RandomUniformLike(c) y = Add(r, c) }");
  EXPECT_EQ(facts.shape("y"), "(2)");
  EXPECT_EQ(facts.facts->constant(facts.value("y")), nullptr);
}

TEST(Facts, WhatWouldBeLargeIsNotComputed) {
  FactsCase facts(
      "(float[b] x) => (y) <float c = {1.0}, int64[2] huge = {1000000, 1000000}, int64 zero = {0}, "
      "int64 most = {4000000000000}, int64 one = {1}> "
      "{ y = Expand(c, huge) z = ConstantOfShape(huge) w = Range(zero, most, one) }");
  EXPECT_EQ(facts.shape("y"), "(1000000, 1000000)");
  EXPECT_EQ(facts.shape("w"), "(4000000000000)");
  for (const char* name : {"y", "z", "w"}) EXPECT_EQ(facts.facts->constant(facts.value(name)), nullptr) << name;
  EXPECT_EQ(facts.facts->uniform(facts.value("y")), 1.0);
  EXPECT_EQ(facts.facts->uniform(facts.value("z")), 0.0);
}

TEST(Facts, UniformTensors) {
  FactsCase facts(R"((float[b,s] x, bool[b,s] m) => (y)
    <float[1] lowest = {-3.4028234663852886e38}, float zero = {0.0}, int64[1] k = {0}, float[2] two = {1.0, 2.0}> {
      n = Shape(x) full = Expand(lowest, n) t = Transpose(full) u = Unsqueeze(t, k)
      three = Constant<value_float = 3.0>() third = Div(u, three)
      fill = ConstantOfShape<value = float[1] {0.0}>(n) z = Mul(fill, three) nan = Mul(x, fill)
      open = Where(m, full, fill) both = Concat<axis=0>(fill, z) mixed = Concat<axis=0>(fill, full)
      like = CastLike(lowest, x) ids = Cast<to=7>(x) none = ConstantOfShape<value = int64[1] {0}>(n) off = Mul(ids, none)
      y = Add(x, full) })");
  const auto uniform = [&](const char* name) { return facts.facts->uniform(facts.value(name)); };
  EXPECT_EQ(uniform("full"), kLowest);
  EXPECT_EQ(uniform("u"), kLowest);
  EXPECT_EQ(uniform("like"), kLowest);
  EXPECT_EQ(uniform("third"), std::numeric_limits<float>::lowest() / 3.0f);
  EXPECT_EQ(uniform("fill"), 0.0);
  EXPECT_EQ(uniform("z"), 0.0);
  EXPECT_EQ(uniform("both"), 0.0);
  EXPECT_EQ(uniform("off"), 0.0);
  for (const char* name : {"x", "nan", "open", "mixed", "two", "y"}) EXPECT_EQ(uniform(name), std::nullopt) << name;
}

TEST(Facts, ScalarsHaveOneElement) {
  FactsCase facts("(float[b] x) => (y) <float a = {2.0}, float[1,1] c = {3.0}, float[2] d = {3.0, 3.0}> { y = Neg(x) }");
  EXPECT_EQ(facts.facts->scalar(facts.value("a")), 2.0);
  EXPECT_EQ(facts.facts->scalar(facts.value("c")), 3.0);
  EXPECT_EQ(facts.facts->scalar(facts.value("d")), std::nullopt);
  EXPECT_EQ(facts.facts->scalar(facts.value("x")), std::nullopt);
}

TEST(Facts, NodesThatAreNotLinkedYet) {
  FactsCase facts("(float[b,s] x) => (y) { y = Identity(x) }");
  Graph& graph = facts.view->main();
  Node* node = facts.view->new_node(graph);
  node->proto->set_op_type("Transpose");
  node->proto->add_input("x");
  node->proto->add_output("draft");
  node->inputs = {graph.find("x")};
  Value* draft = facts.view->new_value(graph, "draft");
  draft->producer = node;
  node->outputs = {draft};
  ASSERT_TRUE(facts.facts->shape(*draft));
  EXPECT_EQ(to_string(facts.facts->shape(*draft).known()), "(s, b)");
}

onnx::ModelProto chain_of(int length, const char* op) {
  onnx::ModelProto model;
  model.set_ir_version(10);
  model.add_opset_import()->set_version(18);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("g");
  onnx::ValueInfoProto& input = *graph.add_input();
  input.set_name("v0");
  input.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  for (const char* name : {"b", "s", "d"}) {
    input.mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_param(name);
  }
  for (int i = 0; i < length; ++i) {
    onnx::NodeProto& node = *graph.add_node();
    node.set_op_type(op);
    node.add_input("v" + std::to_string(i));
    if (std::string(op) == "Add") node.add_input("v" + std::to_string(i / 2));
    node.add_output("v" + std::to_string(i + 1));
  }
  graph.add_output()->set_name("v" + std::to_string(length));
  return model;
}

TEST(Facts, ChainsOfAnyLengthTakeLinearTimeAndNoStack) {
  for (const char* op : {"Add", "Identity", "Relu", "Transpose"}) {
    constexpr int kLength = 100000;
    FactsCase facts(chain_of(kLength, op));
    const Value& last = facts.value("v" + std::to_string(kLength));
    const auto start = std::chrono::steady_clock::now();
    ASSERT_TRUE(facts.facts->shape(last));
    EXPECT_EQ(to_string(facts.facts->shape(last).known()), "(b, s, d)");
    EXPECT_EQ(facts.facts->constant(last), nullptr);
    EXPECT_EQ(facts.facts->uniform(last), std::nullopt);
    // Measured: 0.4 s; a quadratic walk takes minutes.
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20)) << op;
  }
}

TEST(Facts, InvalidNodesAreUnknownNotFatal) {
  const char* const kGraphs[] = {
      "(float[a,b] x) => (y) { y = Concat<axis=5>(x, x) }",
      "(float[a,b] x, float[c] z) => (y) { y = Concat<axis=0>(x, z) }",
      "(float[a,b] x) => (y) { y = Transpose<perm=[0,7]>(x) }",
      "(float[a,b] x) => (y) { y = Flatten<axis=9>(x) }",
      "(float[a,b] x) => (y) <int64[1] k = {12}> { y = Unsqueeze(x, k) }",
      "(float[a,b] x) => (y) <int64[2] k = {0, 0}> { y = Unsqueeze(x, k) }",
      "(float[a,b] x) => (y) <int64[1] k = {-9223372036854775808}> { y = Squeeze(x, k) }",
      "(float[a,b] x, int64[n] i) => (y) { y = Gather<axis=-3>(x, i) }",
      "(float[a,b] x, int64[n,3] i) => (y) { y = GatherND(x, i) }",
      "(float[a,b] x) => (y, z) { y, z = TopK<k=3, axis=4>(x) }",
      "(float[a,b] x) => (y) { y = Einsum<equation=\"ijk->\">(x) }",
      "(float[a,b] x) => (y) { y = Einsum<equation=\"ij->z\">(x) }",
      "(float[a,b] x) => (y) { y = Gather(x) }",
      "(float[a,b] x) => (y) { n = Size(x) m = Mod(n) y = Reshape(x) }",
      "(float[a,b] x) => (y) { y = NoSuchOperator(x) }",
      "(float[a,b] x) => (y) { y = Concat<axis=0>() }",
  };
  for (const char* graph : kGraphs) {
    SCOPED_TRACE(graph);
    for (const int opset : {7, 11, 13, 18, 24}) EXPECT_EQ(FactsCase(graph, opset).shape("y"), "unknown") << graph;
  }
}

TEST(Facts, InputsThatSchemaFunctionsMayTrip) {
  FactsCase facts(R"((float[a,b] x) => (y) {
      y, m, s = LayerNormalization<axis = -9223372036854775808>(x, x)
      l = ai.onnx.ml.LabelEncoder() t = other.Op(x) z = GatherElements(t) c = Concat<axis=0>(x, , x) })");
  for (const char* name : {"m", "s", "z"}) EXPECT_EQ(facts.shape(name), "unknown") << name;
  EXPECT_EQ(facts.facts->uniform(facts.value("c")), std::nullopt);
}

TEST(Facts, HostileSizesDoNotOverflow) {
  FactsCase facts(R"((float[b,9223372036854775807] x) => (y)
    <int64[2] t = {-1, 3}, int64[1] k = {9223372036854775807}, int64[1] step = {-9223372036854775808},
     int64[1] low = {-9223372036854775808}, int64[1] zero = {0}, int64[2] negative = {-5, -7}> {
      a = Reshape(x, t) c = Concat<axis=1>(x, x) d = Slice(x, low, k, zero, step) e = Tile(x, negative)
      f = Expand(x, negative) g = Reshape(x, negative) h = ConstantOfShape(negative) i = Slice(x, k, low, zero, zero)
      n = Shape(x) m = Mul(n, n) o = Mul(m, m) p = Reshape(x, o) y = Identity(x)
      q = Transpose<perm=[0]>(x) r = ArgMax<axis=2>(x) s = Split<axis=1, num_outputs=9223372036854775807>(x) })");
  for (const char* name : {"a", "c", "d", "e", "f", "g", "h", "i", "o", "p", "q", "r", "s"}) {
    const MaybeShape shape = facts.facts->shape(facts.value(name));
    if (!shape) continue;
    for (const Dim& dim : *shape) EXPECT_TRUE(dim.may_be_size()) << name << " " << dim.str();
  }
}

TEST(Facts, RanksThatGrowWithoutEndAreGivenUp) {
  constexpr int kLength = 20000;
  onnx::ModelProto model = chain_of(kLength, "Unsqueeze");
  model.mutable_opset_import(0)->set_version(11);
  for (onnx::NodeProto& node : *model.mutable_graph()->mutable_node()) {
    onnx::AttributeProto& axes = *node.add_attribute();
    axes.set_name("axes");
    axes.set_type(onnx::AttributeProto::INTS);
    axes.add_ints(0);
  }
  FactsCase facts(std::move(model));
  EXPECT_EQ(facts.shape("v2"), "(1, 1, b, s, d)");
  EXPECT_EQ(facts.shape("v" + std::to_string(kLength)), "unknown");
}

TEST(Facts, DeclaredNegativeDimsAreUnknown) {
  onnx::ModelProto model = chain_of(1, "Neg");
  model.mutable_graph()
      ->mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(0)
      ->set_dim_value(-4);
  EXPECT_EQ(FactsCase(model).shape("v1"), "(?v0.0, s, d)");
}

}  // namespace
}  // namespace attn_opt
