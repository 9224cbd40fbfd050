// Scale, caches, further outputs and types of the Attention node.
#include "tests/emit/emit_case.h"

namespace attn_opt {
namespace {

using ::testing::ElementsAre;

TEST(Scale, OfOperandsIsCollected) {
  EmitCase c(kPlain);
  Sdpa sdpa = plain_sdpa(c);
  sdpa.scale = 2;
  sdpa.q.views[0].scale = 0.5;
  sdpa.k.views[1].scale = 0.5;
  const Match match = c.site("p", "y", sdpa);
  EXPECT_EQ(c.emit(match)->scale, 0.5);
  c.rewrite({match});
  EXPECT_EQ(c.attributes(), "scale=0.5");
}

TEST(Scale, ScaledValuesAreTakenAfterTheScaling) {
  EmitCase c(R"(
    mha (float[B,2,L,4] q, float[B,2,S,4] k, float[B,2,S,6] v0) => (float[B,2,L,6] y) {
      three = Constant<value = float {3}>()
      v = Mul(v0, three)
      kt = Transpose<perm = [0,1,3,2]>(k)
      scores = MatMul(q, kt)
      half = Constant<value = float {0.5}>()
      scaled = Mul(scores, half)
      p = Softmax<axis = -1>(scaled)
      y = MatMul(p, v)
    })");
  Sdpa sdpa = plain_sdpa(c);
  sdpa.v.views.push_back(c.view("v0", "bhsd"));
  sdpa.v.views[1].scale = 3;
  c.rewrite({c.site("p", "y", sdpa)});
  EXPECT_EQ(c.attention().input(2), "v");
  EXPECT_LT(c.difference(kSizes), kTolerance);
}

TEST(Scale, SignOfANegativeOneIsOfQ) {
  EmitCase c(R"(
    mha (float[B,2,L,4] q, float[B,2,S,4] k, float[B,2,S,6] v) => (float[B,2,L,6] y) {
      kt = Transpose<perm = [0,1,3,2]>(k)
      scores = MatMul(q, kt)
      minus = Constant<value = float {-0.7}>()
      scaled = Mul(scores, minus)
      p = Softmax<axis = -1>(scaled)
      y = MatMul(p, v)
    })");
  Sdpa sdpa = plain_sdpa(c);
  sdpa.scale = -0.7f;
  c.rewrite({c.site("p", "y", sdpa)});
  EXPECT_EQ(c.attributes(), "scale=0.7");
  EXPECT_EQ(c.maker(c.attention().input(0)).op_type(), "Neg");
  EXPECT_LT(c.difference(kSizes), kTolerance);
}

TEST(Scale, DoubleIsNotRoundedToFloat) {
  EmitCase c(R"(
    mha (double[B,2,L,4] q, double[B,2,S,4] k, double[B,2,S,6] v) => (double[B,2,L,6] y) {
      kt = Transpose<perm = [0,1,3,2]>(k)
      scores = MatMul(q, kt)
      third = Constant<value = double {0.3333333333333333}>()
      scaled = Mul(scores, third)
      p = Softmax<axis = -1>(scaled)
      y = MatMul(p, v)
    })");
  Sdpa sdpa = plain_sdpa(c);
  sdpa.type = onnx::TensorProto::DOUBLE;
  sdpa.scale = 0.3333333333333333;
  c.rewrite({c.site("p", "y", sdpa)});
  EXPECT_EQ(c.attributes(), "scale=1");
  EXPECT_LT(c.difference(kSizes), 1e-14);
}

std::string tensor_scaled(const std::string& type, const std::string& op) {
  return "mha (float[B,2,L,4] q, float[B,2,S,4] k, float[B,2,S,6] v, " + type +
         R"( factor) => (float[B,2,L,6] y) {
    kt = Transpose<perm = [0,1,3,2]>(k)
    scores = MatMul(q, kt)
    scaled = )" +
         op + R"((scores, factor)
    p = Softmax<axis = -1>(scaled)
    y = MatMul(p, v)
  })";
}

TEST(Scale, TensorsGoToQOrToK) {
  struct {
    const char* type;
    bool divides, on_key;
  } cases[] = {{"float[1]", true, false}, {"float[2,1,1]", false, false}, {"float[B,1,L,1]", true, false},
               {"float[S]", false, true}, {"float[B,2,1,S]", true, true}, {"float[1,S]", false, true}};
  for (const auto& one : cases) {
    EmitCase c(tensor_scaled(one.type, one.divides ? "Div" : "Mul"));
    Sdpa sdpa = plain_sdpa(c);
    sdpa.scale = 1;
    sdpa.tensor_scales = {{&c.value("factor"), one.divides, one.on_key, c.shape("scores")}};
    c.rewrite({c.site("p", "y", sdpa)});
    EXPECT_EQ(c.count("MatMul"), 0);
    EXPECT_LT(c.difference(kSizes), one.divides ? 2e-4 : kTolerance) << one.type;
  }
}

TEST(Scale, TensorThatVariesAlongTheKeysOfQIsAMiss) {
  EmitCase c(tensor_scaled("float[L,S]", "Mul"));
  Sdpa sdpa = plain_sdpa(c);
  sdpa.tensor_scales = {{&c.value("factor"), false, false, c.shape("scores")}};
  EXPECT_EQ(c.emit(c.site("p", "y", sdpa)).error().id, "emit.tensor-scale");
}

TEST(Node, SoftcapCausalityAndPrecisionAreAttributes) {
  EmitCase c(kPlain);
  Sdpa sdpa = plain_sdpa(c);
  sdpa.softcap = 30;
  sdpa.is_causal = true;
  sdpa.softmax_precision = onnx::TensorProto::DOUBLE;
  c.rewrite({c.site("p", "y", sdpa)});
  EXPECT_EQ(c.attributes(), "is_causal=1 scale=0.5 softcap=30 softmax_precision=11");
}

constexpr const char* kCached = R"(
  mha (float[B,2,L,4] q, float[B,2,P,4] pk, float[B,2,P,6] pv, float[B,2,L,4] nk, float[B,2,L,6] nv)
      => (float[B,2,L,6] y, float[B,2,T,4] k, float[B,2,T,6] v) {
    k = Concat<axis = 2>(pk, nk)
    v = Concat<axis = 2>(pv, nv)
    kt = Transpose<perm = [0,1,3,2]>(k)
    scores = MatMul(q, kt)
    half = Constant<value = float {0.5}>()
    scaled = Mul(scores, half)
    p = Softmax<axis = -1>(scaled)
    y = MatMul(p, v)
  })";

Sdpa cached_sdpa(EmitCase& c) {
  Sdpa sdpa = plain_sdpa(c);
  auto add_past = [&](Operand& operand, const std::string& past, const std::string& fresh, const std::string& present) {
    OperandView view = c.view(fresh, "bhsd");
    view.past = &c.value(past);
    view.present = &c.value(present);
    operand.views.push_back(view);
  };
  add_past(sdpa.k, "pk", "nk", "k");
  add_past(sdpa.v, "pv", "nv", "v");
  return sdpa;
}

TEST(Node, CachesBecomePastAndPresent) {
  EmitCase c(kCached);
  c.rewrite({c.site("p", "y", cached_sdpa(c))});
  EXPECT_THAT(c.ops(), ElementsAre("Attention"));
  EXPECT_THAT(c.attention().input(), ElementsAre("q", "nk", "nv", "", "pk", "pv"));
  EXPECT_THAT(c.attention().output(), ElementsAre("y", "k", "v"));
  EXPECT_LT(c.difference(kSizes), kTolerance);
}

TEST(Node, CachesOfOneSideAloneStay) {
  EmitCase c(kCached);
  Sdpa sdpa = cached_sdpa(c);
  sdpa.v.views.pop_back();
  c.rewrite({c.site("p", "y", sdpa)});
  EXPECT_EQ(c.count("Concat"), 2);
  EXPECT_THAT(c.attention().input(), ElementsAre("q", "k", "v"));
  EXPECT_LT(c.difference(kSizes), kTolerance);
}

TEST(Node, CachesReadAboveTheProductStay) {
  EmitCase c(R"(
    mha (float[B,2,L,4] q, float[B,2,P,4] pk, float[B,2,P,6] pv, float[B,2,L,4] nk, float[B,2,L,6] nv)
        => (float[B,2,L,6] y, float[B,2,T,4] k, float[B,2,T,6] v) {
      k = Concat<axis = 2>(pk, nk)
      v = Concat<axis = 2>(pv, nv)
      kt = Transpose<perm = [0,1,3,2]>(k)
      scores = MatMul(q, kt)
      mean = ReduceMean<keepdims = 1>(k)
      scaled = Mul(scores, mean)
      p = Softmax<axis = -1>(scaled)
      y = MatMul(p, v)
    })");
  Sdpa sdpa = cached_sdpa(c);
  sdpa.scale = 1;
  sdpa.tensor_scales = {{&c.value("mean"), false, false, c.shape("scores")}};
  c.rewrite({c.site("p", "y", sdpa)});
  EXPECT_LT(c.difference(kSizes), kTolerance);
}

TEST(Node, CausalFromAPastOnNeedsThePast) {
  EmitCase c(kCached);
  Sdpa sdpa = cached_sdpa(c);
  sdpa.v.views.pop_back();
  sdpa.is_causal = true;
  EXPECT_EQ(c.emit(c.site("p", "y", sdpa)).error().id, "emit.causal");
}

TEST(Node, ValidLengthsAreNotGivenBesideAPast) {
  EmitCase c(R"(
    mha (float[B,2,L,4] q, float[B,2,P,4] pk, float[B,2,P,6] pv, float[B,2,L,4] nk, float[B,2,L,6] nv, int64[B] n)
        => (float[B,2,L,6] y) {
      k = Concat<axis = 2>(pk, nk)
      v = Concat<axis = 2>(pv, nv)
      kt = Transpose<perm = [0,1,3,2]>(k)
      y = Attention(q, k, v, , , , n)
    })");
  Sdpa sdpa = cached_sdpa(c);
  sdpa.nonpad_kv_seqlen = &c.value("n");
  c.rewrite({c.site("y", "y", sdpa)});
  EXPECT_THAT(c.attention().input(), ElementsAre("q", "k", "v", "", "", "", "n"));
}

TEST(Node, ProbabilitiesReadByOthersComeFromTheNode) {
  EmitCase c(R"(
    mha (float[B,2,L,4] q, float[B,2,3,4] k, float[B,2,3,6] v) => (float[B,2,L,6] y, float[B,2,L,3] p) {
      kt = Transpose<perm = [0,1,3,2]>(k)
      scores = MatMul(q, kt)
      half = Constant<value = float {0.5}>()
      scaled = Mul(scores, half)
      p = Softmax<axis = -1>(scaled)
      y = MatMul(p, v)
    })");
  Sdpa sdpa = plain_sdpa(c);
  sdpa.probabilities = c.output("p", "bhsd");
  c.rewrite({c.site("p", "y", sdpa)});
  EXPECT_THAT(c.ops(), ElementsAre("Attention"));
  EXPECT_EQ(c.attributes(), "qk_matmul_output_mode=3 scale=0.5");
  EXPECT_THAT(c.attention().output(), ElementsAre("y", "", "", "p"));
  EXPECT_LT(c.difference(kSizes), kTolerance);
}

TEST(Node, KeysOfReadProbabilitiesAreCountedAtRunTime) {
  EmitCase c(R"(
    mha (float[B,2,L,4] q, float[B,2,S,4] k, float[B,2,S,6] v) => (float[B,2,L,6] y, float[B,2,L,S] p) {
      kt = Transpose<perm = [0,1,3,2]>(k)
      scores = MatMul(q, kt)
      half = Constant<value = float {0.5}>()
      scaled = Mul(scores, half)
      p = Softmax<axis = -1>(scaled)
      y = MatMul(p, v)
    })");
  Sdpa sdpa = plain_sdpa(c);
  sdpa.probabilities = c.output("p", "bhsd");
  c.rewrite({c.site("p", "y", sdpa)});
  EXPECT_THAT(c.ops(), ElementsAre("Shape", "Concat", "Min", "Reshape", "Attention", "Max", "Reshape"));
  EXPECT_EQ(c.attributes(), "qk_matmul_output_mode=3 scale=0.5");
  EXPECT_EQ(c.maker("p").op_type(), "Reshape") << "shape inference says that the node makes 0 keys";
  EXPECT_LT(c.difference(kSizes), kTolerance);
}

TEST(Node, ProbabilitiesReadAboveTheProductAreTheNodesOwn) {
  EmitCase c(R"(
    mha (float[B,2,L,4] q, float[B,2,S,4] k, float[B,2,S,6] v) => (float[B,2,L,6] y, float m) {
      kt = Transpose<perm = [0,1,3,2]>(k)
      scores = MatMul(q, kt)
      half = Constant<value = float {0.5}>()
      scaled = Mul(scores, half)
      p = Softmax<axis = -1>(scaled)
      m = ReduceMax<keepdims = 0>(p)
      y = MatMul(p, v)
    })");
  Sdpa sdpa = plain_sdpa(c);
  sdpa.probabilities = c.output("p", "bhsd");
  c.rewrite({c.site("p", "y", sdpa)});
  EXPECT_EQ(c.attributes(), "qk_matmul_output_mode=3 scale=0.5");
  EXPECT_EQ(c.count("Softmax"), 0) << "the node stands above the reader";
  EXPECT_LT(c.difference(kSizes), kTolerance);
}

TEST(Node, AValueThatHangsOnWhatIsMadeIsAMiss) {
  EmitCase c(R"(
    mha (float[B,2,L,4] q, float[B,2,S,4] k, float[B,2,S,6] v0) => (float[B,2,L,6] y) {
      kt = Transpose<perm = [0,1,3,2]>(k)
      scores = MatMul(q, kt)
      half = Constant<value = float {0.5}>()
      scaled = Mul(scores, half)
      largest = ReduceMax<keepdims = 0>(scores)
      v = Add(v0, largest)
      p = Softmax<axis = -1>(scaled)
      y = MatMul(p, v)
    })");
  Sdpa sdpa = plain_sdpa(c);
  sdpa.outputs[0].value = &c.value("scores");
  const auto emission = c.emit(c.site("p", "y", sdpa));
  ASSERT_FALSE(emission);
  EXPECT_EQ(emission.error().id, "emit.order");
}

TEST(Node, HalfOperandsOfAFloatAttentionAreCast) {
  EmitCase c(R"(
    mha (float16[B,2,L,4] qh, float16[B,2,S,4] kh, float16[B,2,S,6] vh) => (float16[B,2,L,6] y) {
      q = Cast<to = 1>(qh)
      k = Cast<to = 1>(kh)
      v = Cast<to = 1>(vh)
      kt = Transpose<perm = [0,1,3,2]>(k)
      scores = MatMul(q, kt)
      half = Constant<value = float {0.5}>()
      scaled = Mul(scores, half)
      p = Softmax<axis = -1>(scaled)
      y0 = MatMul(p, v)
      y = Cast<to = 10>(y0)
    })");
  Sdpa sdpa = plain_sdpa(c);
  sdpa.q.views = {c.view("qh", "bhsd")};
  sdpa.k.views = {c.view("kh", "bhsd")};
  sdpa.v.views = {c.view("vh", "bhsd")};
  sdpa.outputs = {c.output("y", "bhsd")};
  c.rewrite({c.site("p", "y", sdpa)});
  EXPECT_THAT(c.ops(), ElementsAre("Cast", "Cast", "Cast", "Attention", "Cast"));
  EXPECT_LT(c.difference(kSizes), 1e-6);
}

TEST(Node, NamesTellWhereItComesFrom) {
  EmitCase c(kPlain);
  c.rewrite({c.site("p", "y", plain_sdpa(c))});
  EXPECT_EQ(c.attention().name(), "p/Attention");
}

TEST(Node, ADroppedEmissionLeavesTheModelAsItWas) {
  EmitCase c(kPlain);
  const std::string before = c.graph().SerializeAsString();
  {
    const auto dropped = c.emit(c.site("p", "y", plain_sdpa(c)));
  }
  EXPECT_EQ(c.graph().SerializeAsString(), before);
}

}  // namespace
}  // namespace attn_opt
