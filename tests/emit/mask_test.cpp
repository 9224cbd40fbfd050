// attn_mask: how terms are combined, shaped and shielded.
#include <cmath>
#include <limits>

#include "tests/emit/emit_case.h"

namespace attn_opt {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using Kind = ScoreTerm::Kind;

constexpr double kLowest = std::numeric_limits<float>::lowest();

/// kPlain with MASKS between the scaled scores and the softmax of "masked", and INPUTS beside q, k, v.
std::string masked(const std::string& inputs, const std::string& masks) {
  return R"(mha (float[B,2,L,4] q, float[B,2,S,4] k, float[B,2,S,6] v, )" + inputs +
         R"() => (float[B,2,L,6] y) {
    kt = Transpose<perm = [0,1,3,2]>(k)
    product = MatMul(q, kt)
    half = Constant<value = float {0.5}>()
    scores = Mul(product, half)
    )" + masks +
         R"(
    p = Softmax<axis = -1>(masked)
    y = MatMul(p, v)
  })";
}

constexpr const char* kFill = "fill = Constant<value = float {-3.4028234663852886e38}>()\n";

Sdpa with_terms(EmitCase& c, std::vector<ScoreTerm> terms) {
  Sdpa sdpa = plain_sdpa(c);
  sdpa.terms = std::move(terms);
  return sdpa;
}

/// The one element of the tensor that the Constant behind input INPUT of NODE holds.
float constant_input(const EmitCase& c, const onnx::NodeProto& node, int input) {
  return to_tensor(c.maker(node.input(input)).attribute(0).t(), inline_tensors())->data<float>()[0];
}

TEST(Mask, FullBiasIsTakenAsItIs) {
  EmitCase c(masked("float[B,1,L,S] bias", "masked = Add(scores, bias)"));
  const ScoreTerm bias = c.term(Kind::kBias, "bias", "scores");
  c.rewrite({c.site("p", "y", with_terms(c, {bias}))});
  EXPECT_EQ(c.count("Expand"), 0);
  EXPECT_EQ(c.count("Where"), 1) << "it may hold the lowest number";
  EXPECT_TRUE(c.assumes_nothing_else());
  EXPECT_LT(c.difference(kSizes), kTolerance);
}

TEST(Mask, TheRangeOfLengthsCountsTheQueriesBehindThem) {
  EmitCase c(masked("int64[B] past, float[B,1,L,S] bias", "masked = Add(scores, bias)"));
  ScoreTerm bias = c.term(Kind::kBias, "bias", "scores");
  bias.causal = CausalMask{.offset = Dim(0), .otherwise = -INFINITY, .lengths = &c.value("past"), .counts_from_lengths = true};
  c.rewrite({c.site("p", "y", with_terms(c, {bias}))});
  EXPECT_EQ(c.count("Where"), 0) << "the node says it by lengths";
  EXPECT_THAT(c.preconditions(), Contains(AllOf(Field(&Precondition::id, "lengths-in-range"),
                                                Field(&Precondition::detail, "'past' + L is 0 to S"))));
}

constexpr const char* kTwoLayers = R"(
    mha (float[B,2,L,4] q, float[B,2,S,4] k, float[B,2,S,4] v, float[B,1,1,S] bias) => (float[B,2,L,4] y2) {
      kt = Transpose<perm = [0,1,3,2]>(k)
      scores = MatMul(q, kt)
      masked = Add(scores, bias)
      p = Softmax<axis = -1>(masked)
      y = MatMul(p, v)
      scores2 = MatMul(y, kt)
      masked2 = Add(scores2, bias)
      p2 = Softmax<axis = -1>(masked2)
      y2 = MatMul(p2, v)
    })";

std::vector<Match> two_layers(EmitCase& c) {
  Sdpa one = with_terms(c, {c.term(Kind::kBias, "bias", "scores")});
  one.scale = 1;
  Sdpa two = one;
  two.q.views = {c.view("y", "bhsd")};
  two.terms = {c.term(Kind::kBias, "bias", "scores2")};
  two.outputs = {c.output("y2", "bhsd")};
  return {c.site("p", "y", one), c.site("p2", "y2", two)};
}

TEST(Mask, OneBiasOfTwoLayersIsShieldedAndExpandedOnce) {
  EmitCase c(kTwoLayers);
  c.rewrite(two_layers(c));
  EXPECT_EQ(c.count("Attention"), 2);
  EXPECT_EQ(c.count("MatMul"), 0);
  EXPECT_EQ(c.count("Expand"), 1);
  EXPECT_EQ(c.count("Equal"), 1);
  EXPECT_EQ(c.count("Where"), 1);
  EXPECT_EQ(c.attention(0).input(3), c.attention(1).input(3));
  EXPECT_LT(c.difference(kSizes), kTolerance);
}

TEST(Mask, NodesThatStandFurtherDownAreNotShared) {
  EmitCase c(kTwoLayers);
  std::vector<Match> layers = two_layers(c);
  std::swap(layers[0], layers[1]);
  c.rewrite(layers);
  EXPECT_EQ(c.count("Expand"), 2);
  EXPECT_LT(c.difference(kSizes), kTolerance);
}

TEST(Mask, SmallRanksAreUnsqueezedAndExpanded) {
  for (const char* type : {"float[S]", "float[1]", "float[L,1]"}) {
    EmitCase c(masked(std::string(type) + " bias", "masked = Add(scores, bias)"));
    c.rewrite({c.site("p", "y", with_terms(c, {c.term(Kind::kBias, "bias", "scores")}))});
    EXPECT_EQ(c.count("Expand"), 1) << type;
    EXPECT_LT(c.difference(kSizes), kTolerance) << type;
  }
}

TEST(Mask, UnprovenSizesAreExpandedAndNotAssumed) {
  EmitCase c(masked("float[B,1,L,T] bias", "masked = Add(scores, bias)"));
  c.rewrite({c.site("p", "y", with_terms(c, {c.term(Kind::kBias, "bias", "product")}))});
  EXPECT_TRUE(c.assumes_nothing_else());
  for (int64_t t : {1, 5}) EXPECT_LT(c.difference({{"B", 2}, {"L", 3}, {"S", 5}, {"T", t}}), kTolerance);
}

TEST(Mask, OtherSizesAreAMiss) {
  EmitCase c(masked("float[B,3,L,S] bias", "masked = Identity(scores)"));
  const auto emission = c.emit(c.site("p", "y", with_terms(c, {c.term(Kind::kBias, "bias", "scores")})));
  ASSERT_FALSE(emission);
  EXPECT_EQ(emission.error().id, "emit.mask-shape");
}

TEST(Mask, CoefficientMultipliesTheBias) {
  EmitCase c(masked("float[B,1,L,S] bias", R"(
    biased = Add(scores, bias)
    three = Constant<value = float {3}>()
    masked = Mul(biased, three))"));
  ScoreTerm bias = c.term(Kind::kBias, "bias", "scores");
  bias.coefficient = 3;
  Sdpa sdpa = with_terms(c, {bias});
  sdpa.scale = 1.5;
  c.rewrite({c.site("p", "y", sdpa)});
  EXPECT_EQ(c.attributes(), "scale=1.5");
  EXPECT_LT(c.difference(kSizes), kTolerance);
}

TEST(Mask, ZeroBiasIsDropped) {
  EmitCase c(masked("float[B] unused", R"(
    zero = Constant<value = float {0}>()
    masked = Add(scores, zero))"));
  c.rewrite({c.site("p", "y", with_terms(c, {c.term(Kind::kBias, "zero", "scores")}))});
  EXPECT_EQ(c.attention().input_size(), 3);
}

TEST(Mask, FillOfTheLowestNumberIsWrittenAsItsNeighbour) {
  EmitCase c(masked("bool[B,1,L,S] keep", std::string(kFill) + "masked = Where(keep, scores, fill)"));
  c.rewrite({c.site("p", "y", with_terms(c, {c.term(Kind::kKeep, "keep", "scores", kLowest)}))});
  EXPECT_EQ(c.count("Equal"), 0);
  const auto& where = c.maker(c.attention().input(3));
  ASSERT_EQ(where.op_type(), "Where");
  EXPECT_EQ(constant_input(c, where, 2), std::nextafter(std::numeric_limits<float>::lowest(), 0.0f));
  EXPECT_LT(c.difference(kSizes), kTolerance);
}

TEST(Mask, OtherFillsStayAsTheyAre) {
  EmitCase c(masked("bool[B,1,L,S] drop", R"(
    fill = Constant<value = float {-10000}>()
    masked = Where(drop, fill, scores))"));
  c.rewrite({c.site("p", "y", with_terms(c, {c.term(Kind::kDrop, "drop", "scores", -10000)}))});
  const auto& where = c.maker(c.attention().input(3));
  EXPECT_EQ(constant_input(c, where, 1), -10000.0f);
  EXPECT_EQ(constant_input(c, where, 2), 0.0f);
  std::vector<float> last_key_kept(2 * 3 * 5, 1);
  for (size_t row = 0; row < 6; ++row) last_key_kept[row * 5 + 4] = 0;
  const Tensor drop = *Tensor::of<float>({2, 1, 3, 5}, last_key_kept).cast(onnx::TensorProto::BOOL);
  EXPECT_LT(c.difference(kSizes, {{"drop", drop}}), kTolerance);
}

TEST(Mask, FillLiesOverTheBiasAndIsNotAddedToIt) {
  EmitCase c(masked("float[B,1,L,S] bias, bool[B,1,1,S] keep", std::string(kFill) + R"(
    biased = Add(scores, bias)
    masked = Where(keep, biased, fill))"));
  c.rewrite({c.site("p", "y",
                    with_terms(c, {c.term(Kind::kBias, "bias", "scores"), c.term(Kind::kKeep, "keep", "biased", kLowest)}))});
  EXPECT_EQ(c.count("Add"), 0);
  // A row that both mask: lowest + lowest would be -inf, the model has lowest.
  std::vector<float> lowest(2 * 3 * 5, static_cast<float>(kLowest));
  const Feeds all_masked{{"bias", Tensor::of<float>({2, 1, 3, 5}, lowest)},
                         {"keep", Tensor(onnx::TensorProto::BOOL, {2, 1, 1, 5})}};
  EXPECT_LT(c.difference(kSizes, all_masked), kTolerance);
  EXPECT_LT(c.difference(kSizes), kTolerance);
}

TEST(Mask, BiasAboveAFillIsAdded) {
  EmitCase c(masked("float[2,L,S] bias, bool[L,S] keep", R"(
    fill = Constant<value = float {-10000}>()
    kept = Where(keep, scores, fill)
    masked = Add(kept, bias))"));
  c.rewrite(
      {c.site("p", "y", with_terms(c, {c.term(Kind::kKeep, "keep", "scores", -10000), c.term(Kind::kBias, "bias", "kept")}))});
  EXPECT_EQ(c.count("Add"), 1);
  const Tensor keep = *Tensor::of<float>({3, 5}, {1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1, 0}).cast(onnx::TensorProto::BOOL);
  EXPECT_LT(c.difference(kSizes, {{"keep", keep}}), kTolerance);
}

constexpr const char* kInfinity = R"(
    one = Constant<value = float {-1}>()
    nought = Constant<value = float {0}>()
    fill = Div(one, nought)
)";

TEST(Mask, ConditionItselfIsTheMaskWhereRowsKeepAKey) {
  EmitCase c(masked("bool[B,1,1,S] keep", std::string(kInfinity) + "masked = Where(keep, scores, fill)"));
  Sdpa sdpa = with_terms(c, {c.term(Kind::kKeep, "keep", "scores", -INFINITY)});
  sdpa.preconditions = {{"rows-keep-a-key", false, "keep"}};
  c.rewrite({c.site("p", "y", sdpa)});
  EXPECT_THAT(c.ops(), testing::Not(testing::Contains("Where")));
  EXPECT_EQ(c.maker(c.attention().input(3)).op_type(), "Expand");
  const Tensor keep = *Tensor::of<int64_t>({2, 1, 1, 5}, {1, 0, 1, 1, 0, 0, 0, 0, 1, 1}).cast(onnx::TensorProto::BOOL);
  EXPECT_LT(c.difference(kSizes, {{"keep", keep}}), kTolerance);
}

TEST(Mask, DroppingConditionIsNegatedOnce) {
  EmitCase c(masked("bool[L,S] drop", std::string(kInfinity) + R"(
    filled = Where(drop, fill, scores)
    raw = Softmax<axis = -1>(filled)
    empty = IsNaN(raw)
    masked = Where(empty, nought, raw))"));
  Sdpa sdpa = with_terms(c, {c.term(Kind::kDrop, "drop", "scores", -INFINITY)});
  sdpa.guarded = true;
  c.rewrite({c.site("p", "y", sdpa)});
  EXPECT_EQ(c.maker(c.attention().input(3)).op_type(), "Not");
}

TEST(Mask, WithoutARuleForEmptyRowsInfinityIsWritten) {
  EmitCase c(masked("bool[L,S] keep", std::string(kInfinity) + "masked = Where(keep, scores, fill)"));
  c.rewrite({c.site("p", "y", with_terms(c, {c.term(Kind::kKeep, "keep", "scores", -INFINITY)}))});
  const auto& where = c.maker(c.attention().input(3));
  ASSERT_EQ(where.op_type(), "Where");
  EXPECT_EQ(constant_input(c, where, 2), -INFINITY);
  EXPECT_EQ(c.count("Equal"), 0);
}

TEST(Mask, BiasOfAnotherTypeIsCast) {
  EmitCase c(masked("double[B,1,L,S] wide", R"(
    bias = Cast<to = 1>(wide)
    masked = Add(scores, bias))"));
  c.rewrite({c.site("p", "y", with_terms(c, {c.term(Kind::kBias, "wide", "scores")}))});
  EXPECT_EQ(c.count("Cast"), 1);
  EXPECT_LT(c.difference(kSizes), kTolerance);
}

/// Products of windows (B * 4, 2, L, L) with the mask added in (B, 4, 2, L, L).
std::string windows(const std::string& mask_type) {
  return "mha (float[N,2,16,4] q, float[N,2,16,4] k, float[N,2,16,6] v, float[B,3] image, " + mask_type +
         R"( mask) => (float[N,2,16,6] y) {
    kt = Transpose<perm = [0,1,3,2]>(k)
    scores = MatMul(q, kt)
    b = Shape<start = 0, end = 1>(image)
    rest = Constant<value = int64[4] {4, 2, 16, 16}>()
    frame_shape = Concat<axis = 0>(b, rest)
    frame = Reshape(scores, frame_shape)
    masked5 = Add(frame, mask)
    back = Constant<value = int64[4] {-1, 2, 16, 16}>()
    masked = Reshape(masked5, back)
    p = Softmax<axis = -1>(masked)
    y = MatMul(p, v)
  })";
}

TEST(Mask, WindowMaskIsExpandedToAllImages) {
  EmitCase c(windows("float[4,1,16,16]"));
  const Dim images = c.shape("image")[0];
  Sdpa sdpa = with_terms(c, {c.term(Kind::kBias, "mask", "frame")});
  sdpa.scale = 1;
  auto of_windows = [&](const std::string& name, Role one, Role other) {
    Shape shape = c.shape(name);
    shape[0] = images * 4;
    return AxisMap::of(shape, {Role::kBatch, Role::kHead, one, other});
  };
  sdpa.batch = images * 4;
  sdpa.q.views = {{&c.value("q"), of_windows("q", Role::kRow, Role::kFeature)}};
  sdpa.k.views = {{&c.value("k"), of_windows("k", Role::kRow, Role::kFeature)}};
  sdpa.v.views = {{&c.value("v"), of_windows("v", Role::kRow, Role::kFeature)}};
  sdpa.outputs = {{&c.value("y"), of_windows("y", Role::kRow, Role::kFeature)}};
  c.rewrite({c.site("p", "y", sdpa)});
  EXPECT_EQ(c.count("Expand"), 1);
  EXPECT_EQ(c.count("Reshape"), 1);
  EXPECT_LT(c.difference({{"N", 12}, {"B", 3}}), kTolerance);
}

TEST(Mask, FrameThatCannotBeToldApartIsAMiss) {
  EmitCase c(windows("float[4,2,16,16]"));
  ScoreTerm mask = c.term(Kind::kBias, "mask", "frame");
  mask.frame = {Dim::symbol("x"), 5, 7, 16, 16};
  EXPECT_EQ(c.emit(c.site("p", "y", with_terms(c, {mask}))).error().id, "emit.frame");
}

TEST(Mask, FullBiasOfMergedHeadsIsSplit) {
  EmitCase c(R"(
    mha (float[B,2,L,4] q, float[B,2,S,4] k, float[B,2,S,6] v, float[N,L,S] bias) => (float[B,2,L,6] y) {
      kt = Transpose<perm = [0,1,3,2]>(k)
      scores = MatMul(q, kt)
      ls = Shape<start = 2, end = 4>(scores)
      lead = Constant<value = int64[1] {-1}>()
      merged_shape = Concat<axis = 0>(lead, ls)
      merged = Reshape(scores, merged_shape)
      biased = Add(merged, bias)
      full = Shape(scores)
      masked = Reshape(biased, full)
      p = Softmax<axis = -1>(masked)
      y = MatMul(p, v)
    })");
  Sdpa sdpa = with_terms(c, {c.term(Kind::kBias, "bias", "merged")});
  sdpa.scale = 1;
  sdpa.terms[0].frame[0] = c.shape("q")[0] * 2;
  c.rewrite({c.site("p", "y", sdpa)});
  EXPECT_EQ(c.count("Reshape"), 1);
  EXPECT_LT(c.difference({{"B", 2}, {"L", 3}, {"S", 5}, {"N", 4}}), kTolerance);
}

}  // namespace
}  // namespace attn_opt
