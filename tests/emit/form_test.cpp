// Layouts, forms and heads of Q, K, V and the output.
#include "tests/emit/emit_case.h"

namespace attn_opt {
namespace {

using ::testing::ElementsAre;

TEST(Form, PlainAttentionNeedsNoLayoutNode) {
  EmitCase c(kPlain);
  c.rewrite({c.site("p", "y", plain_sdpa(c))});
  EXPECT_THAT(c.ops(), ElementsAre("Attention"));
  EXPECT_THAT(c.attention().input(), ElementsAre("q", "k", "v"));
  EXPECT_THAT(c.attention().output(), ElementsAre("y"));
  EXPECT_EQ(c.attributes(), "scale=0.5");
  EXPECT_LT(c.difference(kSizes), kTolerance);
}

TEST(Form, KeyIsTransposedWhenNothingUpstreamFits) {
  EmitCase c(R"(
    mha (float[B,2,L,4] q, float[B,S,2,4] k0, float[B,2,S,6] v) => (float[B,2,L,6] y) {
      kt = Transpose<perm = [0,2,3,1]>(k0)
      scores = MatMul(q, kt)
      p = Softmax<axis = -1>(scores)
      y = MatMul(p, v)
    })");
  Sdpa sdpa;
  sdpa.q.views = {c.view("q", "bhsd")};
  sdpa.k.views = {c.view("kt", "bhds"), c.view("k0", "bshd")};
  sdpa.v.views = {c.view("v", "bhsd")};
  sdpa.type = onnx::TensorProto::FLOAT;
  sdpa.batch = c.shape("q")[0];
  sdpa.query_heads = 2;
  sdpa.outputs = {c.output("y", "bhsd")};
  c.rewrite({c.site("p", "y", sdpa)});
  EXPECT_THAT(c.ops(), ElementsAre("Transpose", "Attention"));
  EXPECT_EQ(c.maker(c.attention().input(1)).input(0), "k0");
  EXPECT_LT(c.difference(kSizes), kTolerance);
}

constexpr const char* kThreeDimensional = R"(
  mha (float[B,L,8] q3, float[B,S,8] k3, float[B,S,12] v3) => (float[B,L,12] y3) {
    split = Constant<value = int64[4] {0, 0, 2, -1}>()
    merge = Constant<value = int64[3] {0, 0, -1}>()
    q4 = Reshape(q3, split)
    k4 = Reshape(k3, split)
    v4 = Reshape(v3, split)
    q = Transpose<perm = [0,2,1,3]>(q4)
    kt = Transpose<perm = [0,2,3,1]>(k4)
    v = Transpose<perm = [0,2,1,3]>(v4)
    scores = MatMul(q, kt)
    p = Softmax<axis = -1>(scores)
    y = MatMul(p, v)
    y4 = Transpose<perm = [0,2,1,3]>(y)
    y3 = Reshape(y4, merge)
  })";

Sdpa sdpa_3d(EmitCase& c) {
  Sdpa sdpa;
  sdpa.q.views = {c.view("q", "bhsd"), c.view("q4", "bshd"), c.view_3d("q3", 2)};
  sdpa.k.views = {c.view("kt", "bhds"), c.view("k4", "bshd"), c.view_3d("k3", 2)};
  sdpa.v.views = {c.view("v", "bhsd"), c.view("v4", "bshd"), c.view_3d("v3", 2)};
  sdpa.type = onnx::TensorProto::FLOAT;
  sdpa.batch = c.shape("q")[0];
  sdpa.query_heads = 2;
  sdpa.outputs = {c.output("y", "bhsd"), c.output("y4", "bshd"), c.output_3d("y3", 2)};
  return sdpa;
}

TEST(Form, ThreeDimensionalFormIsTakenWhereItIsFree) {
  EmitCase c(kThreeDimensional);
  c.rewrite({c.site("p", "y", sdpa_3d(c))});
  EXPECT_THAT(c.ops(), ElementsAre("Attention"));
  EXPECT_THAT(c.attention().input(), ElementsAre("q3", "k3", "v3"));
  EXPECT_EQ(c.attributes(), "kv_num_heads=2 q_num_heads=2 scale=1");
  EXPECT_LT(c.difference(kSizes), kTolerance);
}

TEST(Form, HiddenSizeOfVIsDeclaredInTheThreeDimensionalForm) {
  std::string text = kThreeDimensional;
  const std::string input = "float[B,S,12] v3", first = "split = ";
  text.replace(text.find(input), input.size(), "float[B,S,24] v6");
  text.replace(text.find(first), first.size(), R"(zero = Constant<value = int64[1] {0}>()
    one = Constant<value = int64[1] {1}>()
    two = Constant<value = int64[1] {2}>()
    width = Shape<start = 2, end = 3>(v6)
    half = Div(width, two)
    v3 = Slice(v6, zero, half, two, one)
    split = )");
  EmitCase c(text);
  c.rewrite({c.site("p", "y", sdpa_3d(c))});
  ASSERT_EQ(c.graph().value_info_size(), 1);
  EXPECT_EQ(c.graph().value_info(0).name(), "v3");
  EXPECT_EQ(c.graph().value_info(0).type().tensor_type().shape().dim(2).dim_value(), 12);
  EXPECT_LT(c.difference(kSizes), kTolerance);
}

TEST(Form, FourDimensionalFormIsMadeWhenAskedFor) {
  EmitCase c(kThreeDimensional);
  c.rewrite({c.site("p", "y", sdpa_3d(c))}, {Target::kPortable, Form::k4d});
  EXPECT_EQ(c.attributes(), "scale=1");
  EXPECT_THAT(c.attention().input(), ElementsAre("q", testing::_, "v"));
  EXPECT_LT(c.difference(kSizes), kTolerance);
}

TEST(Form, ThreeDimensionalFormIsMadeWhenAskedFor) {
  EmitCase c(kPlain);
  c.rewrite({c.site("p", "y", plain_sdpa(c))}, {Target::kPortable, Form::k3d});
  EXPECT_EQ(c.attributes(), "kv_num_heads=2 q_num_heads=2 scale=0.5");
  EXPECT_LT(c.difference(kSizes), kTolerance);
}

TEST(Form, ThreeDimensionalFormNeedsANumberOfHeads) {
  EmitCase c(R"(
    mha (float[B,H,L,4] q, float[B,H,S,4] k, float[B,H,S,6] v) => (float[B,H,L,6] y) {
      kt = Transpose<perm = [0,1,3,2]>(k)
      scores = MatMul(q, kt)
      p = Softmax<axis = -1>(scores)
      y = MatMul(p, v)
    })");
  const auto emission = c.emit(c.site("p", "y", plain_sdpa(c)), {Target::kPortable, Form::k3d});
  ASSERT_FALSE(emission);
  EXPECT_EQ(emission.error().id, "emit.form");
  EXPECT_THAT(emission.error().peeled, ElementsAre("softmax"));
}

constexpr const char* kRepeated = R"(
  gqa (float[B,4,L,4] q, float[B,2,S,4] k2, float[B,2,S,6] v2) => (float[B,4,L,6] y) {
    two = Constant<value = int64[1] {2}>()
    group = Constant<value = int64[5] {1, 1, 2, 1, 1}>()
    k5 = Unsqueeze(k2, two)
    ke = Expand(k5, group)
    k_target = Constant<value = int64[4] {0, 4, -1, 4}>()
    k = Reshape(ke, k_target)
    v5 = Unsqueeze(v2, two)
    ve = Expand(v5, group)
    v_target = Constant<value = int64[4] {0, 4, -1, 6}>()
    v = Reshape(ve, v_target)
    kt = Transpose<perm = [0,1,3,2]>(k)
    scores = MatMul(q, kt)
    half = Constant<value = float {0.5}>()
    scaled = Mul(scores, half)
    p = Softmax<axis = -1>(scaled)
    y = MatMul(p, v)
  })";

/// The view of SMALL (B, Hkv, S, D) where REPEATED is (B, Hq, S, D).
OperandView unrepeated(EmitCase& c, const std::string& repeated, const std::string& expanded, const std::string& small) {
  Shape before = c.shape(expanded);
  before[2] = 1;
  const AxisMap map = c.axes(repeated, "bhsd").regrouped(c.shape(expanded))->before_expand(before, c.shape(expanded)).value();
  return {&c.value(small), *map.regrouped(c.shape(small))};
}

TEST(Form, RepeatedHeadsAreLeftToTheOperator) {
  EmitCase c(kRepeated);
  Sdpa sdpa = plain_sdpa(c);
  sdpa.k.views.push_back(unrepeated(c, "k", "ke", "k2"));
  sdpa.v.views.push_back(unrepeated(c, "v", "ve", "v2"));
  const Match match = c.site("p", "y", sdpa);
  EXPECT_EQ(c.emit(match)->kv_group, 2);
  c.rewrite({match}, {Target::kOrt});
  EXPECT_THAT(c.ops(), ElementsAre("Attention"));
  EXPECT_THAT(c.attention().input(), ElementsAre("q", "k2", "v2"));
  EXPECT_LT(c.difference(kSizes), kTolerance);
}

TEST(Form, RepeatsOfOneSideAloneStay) {
  EmitCase c(kRepeated);
  Sdpa sdpa = plain_sdpa(c);
  sdpa.k.views.push_back(unrepeated(c, "k", "ke", "k2"));
  c.rewrite({c.site("p", "y", sdpa)});
  EXPECT_THAT(c.attention().input(), ElementsAre("q", "k", "v"));
  EXPECT_LT(c.difference(kSizes), kTolerance);
}

TEST(Form, SharedHeadsAreToldWhereTheTargetDoesNotFindThem) {
  EmitCase c(R"(
    gqa (float[B,L,4,4] q0, float[B,2,S,4] k2, float[B,2,S,6] v2) => (float[B,4,L,6] y) {
      q = Transpose<perm = [0,2,1,3]>(q0)
      y = Attention(q, k2, v2)
    })");
  Sdpa sdpa;
  sdpa.q.views = {c.view("q0", "bshd")};
  sdpa.k.views = {c.view("k2", "bhsd")};
  sdpa.v.views = {c.view("v2", "bhsd")};
  sdpa.type = onnx::TensorProto::FLOAT;
  sdpa.batch = c.shape("q")[0];
  sdpa.query_heads = 4;
  sdpa.scale = 0.5;
  sdpa.outputs = {c.output("y", "bhsd")};
  c.rewrite({c.site("y", "y", sdpa)});
  EXPECT_EQ(c.attributes(), "kv_num_heads=2 q_num_heads=4 scale=0.5");
  EXPECT_LT(c.difference(kSizes), kTolerance);
}

TEST(Form, OneHeadOfKAndVNeedsNothing) {
  EmitCase c(R"(
    mqa (float[B,4,L,4] q, float[B,1,S,4] k, float[B,1,S,6] v) => (float[B,4,L,6] y) {
      kt = Transpose<perm = [0,1,3,2]>(k)
      scores = MatMul(q, kt)
      half = Constant<value = float {0.5}>()
      scaled = Mul(scores, half)
      p = Softmax<axis = -1>(scaled)
      y = MatMul(p, v)
    })");
  c.rewrite({c.site("p", "y", plain_sdpa(c))}, {Target::kOrt});
  EXPECT_THAT(c.ops(), ElementsAre("Attention"));
  EXPECT_LT(c.difference(kSizes), kTolerance);
}

TEST(Form, OneHeadOfKAloneAndABatchOfOneAreExpanded) {
  EmitCase c(R"(
    mqa (float[B,4,L,4] q, float[B,1,S,4] k, float[1,4,S,6] v) => (float[B,4,L,6] y) {
      kt = Transpose<perm = [0,1,3,2]>(k)
      scores = MatMul(q, kt)
      half = Constant<value = float {0.5}>()
      scaled = Mul(scores, half)
      p = Softmax<axis = -1>(scaled)
      y = MatMul(p, v)
    })");
  c.rewrite({c.site("p", "y", plain_sdpa(c))});
  EXPECT_EQ(c.count("Expand"), 2);
  EXPECT_TRUE(c.assumes_nothing_else());
  EXPECT_LT(c.difference(kSizes), kTolerance);
}

TEST(Form, QueriesAreExpandedToTheBatchOfKeysAlone) {
  const auto attention_of_keys = [](const std::string& batch) {
    return EmitCase("mha (float[1,2,L,4] q, float[" + batch + R"(,2,S,4] k, float[B,2,S,6] v) => (float[B,2,L,6] y) {
      kt = Transpose<perm = [0,1,3,2]>(k)
      scores = MatMul(q, kt)
      p = Softmax<axis = -1>(scores)
      y = MatMul(p, v)
    })");
  };
  EmitCase keys = attention_of_keys("B"), one = attention_of_keys("1");
  Sdpa sdpa = plain_sdpa(keys);
  sdpa.batch = keys.shape("k")[0];
  EXPECT_TRUE(keys.emit(keys.site("p", "y", sdpa)));
  sdpa = plain_sdpa(one);
  sdpa.batch = one.shape("v")[0];
  EXPECT_EQ(one.emit(one.site("p", "y", sdpa)).error().id, "emit.query-broadcasts");
}

TEST(Form, MergedBatchAndHeadsAreSplit) {
  EmitCase c(R"(
    mha (float[B,2,L,4] q0, float[B,2,S,4] k0, float[B,2,S,6] v0) => (float[B,2,L,6] y0) {
      l = Shape<start = 2, end = 3>(q0)
      s = Shape<start = 2, end = 3>(k0)
      lead = Constant<value = int64[1] {-1}>()
      four = Constant<value = int64[1] {4}>()
      six = Constant<value = int64[1] {6}>()
      q_shape = Concat<axis = 0>(lead, l, four)
      k_shape = Concat<axis = 0>(lead, s, four)
      v_shape = Concat<axis = 0>(lead, s, six)
      q = Reshape(q0, q_shape)
      k = Reshape(k0, k_shape)
      v = Reshape(v0, v_shape)
      kt = Transpose<perm = [0,2,1]>(k)
      scores = MatMul(q, kt)
      p = Softmax<axis = -1>(scores)
      y = MatMul(p, v)
      b = Shape<start = 0, end = 2>(q0)
      y_shape = Concat<axis = 0>(b, l, six)
      y0 = Reshape(y, y_shape)
    })");
  const Dim batch = c.shape("q0")[0];
  auto merged = [&](const std::string& name, Role one, Role other) {
    const Shape shape = c.shape(name);
    const AxisMap apart = AxisMap::of({batch, 2, shape[1], shape[2]}, {Role::kBatch, Role::kHead, one, other});
    return OperandView{&c.value(name), apart.regrouped(shape).value()};
  };
  Sdpa sdpa;
  sdpa.q.views = {merged("q", Role::kRow, Role::kFeature)};
  sdpa.k.views = {merged("kt", Role::kFeature, Role::kRow)};
  sdpa.v.views = {merged("v", Role::kRow, Role::kFeature)};
  sdpa.type = onnx::TensorProto::FLOAT;
  sdpa.batch = batch;
  sdpa.query_heads = 2;
  sdpa.outputs = {{&c.value("y"), merged("y", Role::kRow, Role::kFeature).axes}};
  c.rewrite({c.site("p", "y", sdpa)});
  EXPECT_EQ(c.count("MatMul"), 0);
  EXPECT_LT(c.difference(kSizes), kTolerance);
}

TEST(Form, ProductsWithoutBatchGetAnAxisOfOne) {
  EmitCase c(R"(
    mha (float[H,L,4] q, float[H,S,4] k, float[H,S,6] v, float[H,L,S] bias) => (float[H,L,6] y) {
      kt = Transpose<perm = [0,2,1]>(k)
      scores = MatMul(q, kt)
      biased = Add(scores, bias)
      p = Softmax<axis = -1>(biased)
      y = MatMul(p, v)
    })");
  Sdpa sdpa;
  sdpa.q.views = {c.view("q", "hsd")};
  sdpa.k.views = {c.view("kt", "hds"), c.view("k", "hsd")};
  sdpa.v.views = {c.view("v", "hsd")};
  sdpa.type = onnx::TensorProto::FLOAT;
  sdpa.batch = 1;
  sdpa.query_heads = c.shape("q")[0];
  sdpa.terms = {c.term(ScoreTerm::Kind::kBias, "bias", "scores")};
  sdpa.outputs = {c.output("y", "hsd")};
  c.rewrite({c.site("p", "y", sdpa)});
  EXPECT_EQ(c.count("Unsqueeze"), 3);
  EXPECT_EQ(c.maker("y").op_type(), "Squeeze");
  EXPECT_EQ(c.count("Reshape"), 0);
  EXPECT_LT(c.difference({{"H", 3}, {"L", 3}, {"S", 5}}), kTolerance);
}

TEST(Form, EinsumLayoutsAreTransposed) {
  EmitCase c(R"(
    mha (float[B,L,2,4] q, float[B,S,2,4] k, float[B,S,2,6] v) => (float[B,L,2,6] y) {
      scores = Einsum<equation = "blhd,bshd->bhls">(q, k)
      p = Softmax<axis = -1>(scores)
      y = Einsum<equation = "bhls,bshd->blhd">(p, v)
    })");
  Sdpa sdpa;
  sdpa.q.views = {c.view("q", "bshd")};
  sdpa.k.views = {c.view("k", "bshd")};
  sdpa.v.views = {c.view("v", "bshd")};
  sdpa.type = onnx::TensorProto::FLOAT;
  sdpa.batch = c.shape("q")[0];
  sdpa.query_heads = 2;
  sdpa.outputs = {c.output("y", "bshd")};
  c.rewrite({c.site("p", "y", sdpa)});
  EXPECT_THAT(c.ops(), ElementsAre("Transpose", "Transpose", "Transpose", "Attention", "Transpose"));
  EXPECT_LT(c.difference(kSizes), kTolerance);
}

TEST(Form, UnsupportedTypesAreAMiss) {
  EmitCase c(kPlain);
  Sdpa sdpa = plain_sdpa(c);
  sdpa.type = onnx::TensorProto::BFLOAT16;
  const auto emission = c.emit(c.site("p", "y", sdpa));
  EXPECT_EQ(emission.error().id, "target.dtype");
  EXPECT_EQ(emission.error().found, "bfloat16, which --target spec takes");
}

}  // namespace
}  // namespace attn_opt
