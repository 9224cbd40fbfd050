// Rewrites that are wrong on purpose are refused.
#include <gmock/gmock.h>

#include <limits>

#include "tests/verify/site_fixture.h"

namespace attn_opt {
namespace {

using testing::HasSubstr;

void expect_failed(const Verification& result, const std::string& reason = "differs by") {
  EXPECT_EQ(result.verdict, Verdict::kFailed) << result.reason;
  EXPECT_THAT(result.reason, HasSubstr(reason));
}

constexpr char kBiasInput[] = ", float[B,1,L,S] m";
constexpr char kKeepInput[] = ", bool[B,1,L,S] m";
constexpr char kAddBias[] = "  scaled = Mul(product, c)\n  scores = Add(scaled, m)\n";
constexpr char kFillInfinity[] =
    "  fill = Constant<value = float {-inf}>()\n  scaled = Mul(product, c)\n  scores = Where(m, scaled, fill)\n";
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(VerifierWrong, ScaleOffByOnePercent) {
  SiteFixture site(AttentionModel{});
  site.scale *= 1.01;
  expect_failed(site.verify(site.attention({"q", "k", "v"})));
}

TEST(VerifierWrong, ScaleOffByOnePercentInHalf) {
  AttentionModel model;
  model.type = "float16";
  SiteFixture site(model);
  site.scale *= 1.01;
  expect_failed(site.verify(site.attention({"q", "k", "v"})));
}

/// float16 products, to which the model adds M in float32.
AttentionModel bias_in_single_above_half() {
  AttentionModel model{.scores = "  scaled = Mul(product, c)\n  single = Cast<to = 1>(scaled)\n  scores = Add(single, m)\n",
                       .inputs = kBiasInput,
                       .weights = "  p32 = Softmax<axis = -1>(scores)\n  p = Cast<to = 10>(p32)\n"};
  model.type = "float16";
  return model;
}

TEST(VerifierWrong, SumOfAnUpcastSoftmaxMadeInHalf) {
  SiteFixture site(bias_in_single_above_half());
  site.scale = 0.353515625;  // as the model rounds it
  site.add_term(ScoreTerm::Kind::kBias, "m");
  site.assume("rows-keep-a-key");
  const auto in_type = [&](int64_t type) {
    return site.attention([&](GraphBuilder& build) {
      std::vector<Value*> inputs;
      for (const char* name : {"q", "k", "v", "m"})
        inputs.push_back(build.node("Cast", {site.value(name)}, {GraphBuilder::attribute("to", type)}));
      return inputs;
    });
  };
  expect_failed(site.verify(in_type(onnx::TensorProto::FLOAT16)), "where the model itself is by");
}

TEST(VerifierWrong, ScaleOfADoubleModelRoundedToFloat) {
  AttentionModel model;
  model.type = "double";
  SiteFixture site(model);
  expect_failed(site.verify(site.attention({"q", "k", "v"})), "ulp of its row in float64");
}

TEST(VerifierWrong, MaskDropped) {
  SiteFixture site(AttentionModel{.scores = kAddBias, .inputs = kBiasInput});
  site.add_term(ScoreTerm::Kind::kBias, "m");
  site.assume("rows-keep-a-key");
  expect_failed(site.verify(site.attention({"q", "k", "v"})));
}

// What a Loop hands on is the scores before its first iteration and after it, and no longer after the second.
TEST(VerifierWrong, ScoresThatChangeInASecondIteration) {
  constexpr char kLoop[] = R"(  scaled = Mul(product, c)
  scores, last = Loop(times, yes, scaled, scaled) <body = body (int64 i, bool before, float own, float other)
      => (bool after, float next, float later) {
    after = Identity(before)
    next = Identity(other)
    later = Add(other, other)
  }>
)";
  SiteFixture site(AttentionModel{.scores = kLoop, .inputs = ", int64 times, bool yes"});
  expect_failed(site.verify(site.attention({"q", "k", "v"})));
}

TEST(VerifierWrong, PolarityInverted) {
  SiteFixture site(AttentionModel{.scores = kFillInfinity, .inputs = kKeepInput});
  site.add_term(ScoreTerm::Kind::kKeep, "m", -kInfinity);
  site.assume("rows-keep-a-key");
  EXPECT_EQ(site.verify(site.attention({"q", "k", "v", "m"})).verdict, Verdict::kVerified);
  const auto inverted = site.attention([&](GraphBuilder& build) {
    return std::vector<Value*>{site.value("q"), site.value("k"), site.value("v"), build.node("Not", {site.value("m")})};
  });
  expect_failed(site.verify(inverted));
}

TEST(VerifierWrong, KeysAndValuesSwapped) {
  SiteFixture site(AttentionModel{});
  expect_failed(site.verify(site.attention({"q", "v", "k"})));
}

TEST(VerifierWrong, HeadsTiledNotInterleaved) {
  AttentionModel model{.heads = "  kh = Concat<axis = 1>(k, k)\n  vh = Concat<axis = 1>(v, v)\n", .kv_heads = 2};
  SiteFixture site(model);
  expect_failed(site.verify(site.attention({"q", "k", "v"})));
}

AttentionModel model_with_cache() {
  AttentionModel model;
  model.inputs = ", float[B,4,P,8] pk, float[B,4,P,8] pv";
  model.heads = "  kh = Concat<axis = 2>(pk, k)\n  vh = Concat<axis = 2>(pv, v)\n";
  model.outputs = ", float[B,4,T,8] kh, float[B,4,T,8] vh";
  return model;
}

void describe_cache(SiteFixture& site) {
  for (auto [operand, name, past, present] :
       {std::tuple(&site.sdpa.k, "k", "pk", "kh"), std::tuple(&site.sdpa.v, "v", "pv", "vh")}) {
    OperandView view = site.view_of(name);
    view.past = site.value(past);
    view.present = site.value(present);
    operand->views.push_back(view);
  }
}

TEST(VerifierWrong, CacheOrderSwapped) {
  SiteFixture site(model_with_cache());
  describe_cache(site);
  expect_failed(site.verify(site.attention({"q", "pk", "pv", "", "k", "v"}, {}, {"y", "kh", "vh"})), "kh is not copied");
}

TEST(VerifierWrong, CausalOffsetForgotten) {
  AttentionModel model = model_with_cache();
  model.scores =
      "  zero = Constant<value = int64 {0}>()\n  one = Constant<value = int64 {1}>()\n"
      "  first = Constant<value_ints = [0]>()\n  ps = Shape<start = 2, end = 3>(pk)\n  p0 = Squeeze(ps, first)\n"
      "  ts = Shape<start = 2, end = 3>(kh)\n  t0 = Squeeze(ts, first)\n  keys = Range(zero, t0, one)\n"
      "  queries = Range(p0, t0, one)\n  second = Constant<value_ints = [1]>()\n  column = Unsqueeze(queries, second)\n"
      "  keep = LessOrEqual(keys, column)\n  inf = Constant<value = float {-inf}>()\n  scaled = Mul(product, c)\n"
      "  scores = Where(keep, scaled, inf)\n";
  std::string text = model.text();
  for (size_t at; (at = text.find(",S,8]")) != std::string::npos;) text.replace(at, 5, ",L,8]");
  SiteFixture site(text);
  site.sdpa = site.plain_sdpa();
  describe_cache(site);
  site.sdpa.is_causal = true;
  site.assume("scores-finite");
  const auto causal = GraphBuilder::attribute("is_causal", int64_t{1});
  const auto right = site.attention({"q", "k", "v", "", "pk", "pv"}, {causal}, {"y", "kh", "vh"});
  const Verification verified = site.verify(right);
  EXPECT_EQ(verified.verdict, Verdict::kVerified) << verified.reason;
  expect_failed(site.verify(site.attention({"q", "kh", "vh"}, {causal})));
}

TEST(VerifierWrong, SoftcapDropped) {
  AttentionModel model;
  model.scores =
      "  scaled = Mul(product, c)\n  cap32 = Constant<value = float {2}>()\n  cap = CastLike(cap32, product)\n"
      "  part = Div(scaled, cap)\n  bent = Tanh(part)\n  scores = Mul(bent, cap)\n";
  SiteFixture site(model);
  site.sdpa.softcap = 2;
  const auto right = site.attention({"q", "k", "v"}, {GraphBuilder::attribute("softcap", 2.0f)});
  const Verification verified = site.verify(right);
  EXPECT_EQ(verified.verdict, Verdict::kVerified) << verified.reason;
  expect_failed(site.verify(site.attention({"q", "k", "v"})));
}

TEST(VerifierWrong, FillAddedWhereItReplaces) {
  AttentionModel model{.inputs = std::string(kBiasInput) + ", bool[B,1,L,S] n"};
  model.scores =
      "  fill = Constant<value = float {-3.4028234663852886e38}>()\n  scaled = Mul(product, c)\n"
      "  biased = Add(scaled, m)\n  scores = Where(n, fill, biased)\n";
  SiteFixture site(model);
  site.add_term(ScoreTerm::Kind::kBias, "m");
  site.add_term(ScoreTerm::Kind::kDrop, "n", std::numeric_limits<float>::lowest());
  auto with_mask = [&](bool replaces) {
    return site.attention([&](GraphBuilder& build) {
      Value* fill = build.scalar(kNextAboveLowest, onnx::TensorProto::FLOAT);
      Value* bias = site.without_lowest(build, "m");
      Value* otherwise = replaces ? bias : build.scalar(0, onnx::TensorProto::FLOAT);
      Value* mask = build.node("Where", {site.value("n"), fill, otherwise});
      if (!replaces) mask = build.node("Add", {bias, mask});
      return std::vector<Value*>{site.value("q"), site.value("k"), site.value("v"), mask};
    });
  };
  site.assume("rows-keep-a-key");
  expect_failed(site.verify(with_mask(true)), "all masked, and no query is a number");
  site.assume("scores-finite");
  const Verification verified = site.verify(with_mask(true));
  EXPECT_EQ(verified.verdict, Verdict::kVerified) << verified.reason;
  site.sdpa.preconditions.clear();
  expect_failed(site.verify(with_mask(false)), "");
}

TEST(VerifierWrong, InfinityTurnedIntoLowest) {
  SiteFixture site(AttentionModel{.scores = kFillInfinity, .inputs = kKeepInput});
  site.add_term(ScoreTerm::Kind::kKeep, "m", -kInfinity);
  expect_failed(site.verify(site.attention([&](GraphBuilder& build) {
    Value* lowest = build.scalar(kNextAboveLowest, onnx::TensorProto::FLOAT);
    Value* zero = build.scalar(0, onnx::TensorProto::FLOAT);
    return std::vector<Value*>{site.value("q"), site.value("k"), site.value("v"),
                               build.node("Where", {site.value("m"), zero, lowest})};
  })),
                "NaN or infinity on one side alone");
}

TEST(VerifierWrong, ProvenPreconditionExplainsNothing) {
  SiteFixture site(AttentionModel{.scores = kAddBias, .inputs = kBiasInput});
  site.add_term(ScoreTerm::Kind::kBias, "m");
  site.assume("rows-keep-a-key", true);
  expect_failed(site.verify(site.masked_attention()), "one row empty");
}

constexpr char kThreeDimensional[] = R"(<ir_version: 10, opset_import: ["" : 18]>
m (float[B,L,32] q, float[B,4,S,8] kh, float[B,4,S,8] vh, float[B,S,32] k3, float[B,S,32] v3) => (float[B,L,32] y)
{
  split = Constant<value_ints = [0, 0, 4, 8]>()
  merge = Constant<value_ints = [0, 0, 32]>()
  q4 = Reshape(q, split)
  qh = Transpose<perm = [0, 2, 1, 3]>(q4)
  k4 = Reshape(k3, split)
  kt = Transpose<perm = [0, 2, 3, 1]>(k4)
  v4 = Reshape(v3, split)
  vt = Transpose<perm = [0, 2, 1, 3]>(v4)
  c = Constant<value = float {0.35355338454246521}>()
  product = MatMul(qh, kt)
  scores = Mul(product, c)
  p = Softmax<axis = -1>(scores)
  heads = MatMul(p, vt)
  rows = Transpose<perm = [0, 2, 1, 3]>(heads)
  y = Reshape(rows, merge)
})";

TEST(VerifierWrong, HeadCount) {
  SiteFixture site(kThreeDimensional);
  site.sdpa.q.views = {site.view_of("qh")};
  site.sdpa.k.views = {site.view_of("kh")};
  site.sdpa.v.views = {site.view_of("vt")};
  site.sdpa.type = onnx::TensorProto::FLOAT;
  const auto heads = [](int64_t count) {
    return GraphBuilder::Attributes{GraphBuilder::attribute("q_num_heads", count),
                                    GraphBuilder::attribute("kv_num_heads", count)};
  };
  const Verification verified = site.verify(site.attention({"q", "k3", "v3"}, heads(4)));
  EXPECT_EQ(verified.verdict, Verdict::kVerified) << verified.reason;
  expect_failed(site.verify(site.attention({"q", "k3", "v3"}, heads(2))));
}

TEST(VerifierWrong, DoesNotRunWhereTheModelDoes) {
  SiteFixture site(AttentionModel{});
  const auto emission = site.attention([&](GraphBuilder& build) {
    Value* wrong = build.node("Reshape", {site.value("k"), build.ints({1, 4, 7, 8})});
    return std::vector<Value*>{site.value("q"), wrong, site.value("v")};
  });
  expect_failed(site.verify(emission), "what is written does not run");
}

TEST(VerifierWrong, DoesNotRunWhereASizeOfOneBroadcasts) {
  std::string text = AttentionModel{}.text();
  const std::string values = "float[B,4,S,8] v", output = "float[B,4,L,8] y";
  text.replace(text.find(values), values.size(), "float[3,4,S,8] v");
  text.replace(text.find(output), output.size(), "float[3,4,L,8] y");
  SiteFixture site(text);
  site.sdpa = site.plain_sdpa();
  const auto emission = site.attention([&](GraphBuilder& build) {
    Value* three = build.node("Reshape", {site.value("q"), build.ints({3, 4, -1, 8})});
    return std::vector<Value*>{three, site.value("k"), site.value("v")};
  });
  const Verification result = site.verify(emission);
  expect_failed(result, "what is written does not run");
  expect_failed(result, "B=1");
}

TEST(VerifierWrong, CannotBeRunAtAll) {
  SiteFixture site(AttentionModel{});
  const auto emission = site.attention([&](GraphBuilder& build) {
    onnx::AttributeProto value;
    value.set_name("value");
    value.set_type(onnx::AttributeProto::TENSOR);
    value.mutable_t()->set_data_type(onnx::TensorProto::FLOAT);
    value.mutable_t()->add_dims(2);
    value.mutable_t()->add_float_data(1);
    Value* broken = build.node("Mul", {site.value("k"), build.node("Constant", {}, {value})});
    return std::vector<Value*>{site.value("q"), broken, site.value("v")};
  });
  expect_failed(site.verify(emission), "what is written does not run");
}

TEST(VerifierWrong, ReadsWhatItMakes) {
  SiteFixture site(AttentionModel{});
  expect_failed(site.verify(site.attention({"y", "k", "v"})), "reads the value that it makes");
}

}  // namespace
}  // namespace attn_opt
