// Shape arithmetic as exporters write it around attention.
#include <map>

#include "tests/match/facts_case.h"

namespace attn_opt {
namespace {

TEST(FactsChains, RepeatKvOfTorchScript) {
  // k (b, kv, s, d) -> Unsqueeze -> Expand to Where(shape == -1, 1, shape) -> Reshape to (b, heads, s, d).
  FactsCase facts(R"((float[b,2,s,16] k) => (y)
    <int64[1] two = {2}, int64 zero = {0}, int64 seq = {2}, int64[1] first = {0}, int64[1] g = {4}, int64[1] kv = {2},
     int64[1] d = {16}, int64[1] heads = {8}, int64 minus = {-1}> {
      n = Shape(k) b0 = Gather(n, zero) b1 = Unsqueeze(b0, first) s0 = Gather(n, seq) s1 = Unsqueeze(s0, first)
      u = Unsqueeze(k, two)
      target = Concat<axis=0>(b1, kv, g, s1, d)
      five = Shape(target) ones = ConstantOfShape<value = int64[1] {1}>(five)
      sign = Mul(ones, minus) open = Equal(target, sign) shape = Where(open, ones, target)
      e = Expand(u, shape)
      back = Concat<axis=0>(b1, heads, s1, d)
      y = Reshape(e, back) })");
  EXPECT_EQ(facts.integers("shape"), "(b, 2, 4, s, 16)");
  EXPECT_EQ(facts.shape("e"), "(b, 2, 4, s, 16)");
  EXPECT_EQ(facts.shape("y"), "(b, 8, s, 16)");
  EXPECT_EQ(facts.assumptions(), "");
}

TEST(FactsChains, SwapInThreeDimensionsOfDynamo) {
  FactsCase facts(R"((float[b,8,s,16] k) => (y)
    <int64[1] from_start = {-9223372036854775808}, int64[1] last = {-1}, int64[1] second = {-2},
     int64[1] end = {9223372036854775807}, int64[1] axis = {0}, int64[1] open = {-1}> {
      n = Shape(k)
      d = Slice(n, last, end, axis) s = Slice(n, second, last, axis) lead = Slice(n, from_start, second, axis)
      flat = Concat<axis=0>(open, s, d) x3 = Reshape(k, flat) swapped = Transpose<perm=[0,2,1]>(x3)
      back = Concat<axis=0>(lead, d, s) y = Reshape(swapped, back) })");
  EXPECT_EQ(facts.shape("x3"), "(8*b, s, 16)");
  EXPECT_EQ(facts.shape("y"), "(b, 8, 16, s)");
}

TEST(FactsChains, MinusOneCancelsBeforeItMultipliesOut) {
  FactsCase facts(R"((float[b,past,8,16] p, float[b,seq,8,16] q) => (y) <int64[1] open = {-1}> {
      x = Concat<axis=1>(p, q) lead = Shape<start=0,end=2>(x) t = Concat<axis=0>(lead, open) y = Reshape(x, t) })");
  EXPECT_EQ(facts.shape("y"), "(b, past + seq, 128)");
}

TEST(FactsChains, DefaultScaleOfTorchScriptIsAConstant) {
  FactsCase facts(R"((float[b,8,s,64] q) => (y)
    <int64[1] last = {-1}, int64[1] end = {9223372036854775807}, float[1] one = {1.0}> {
      n = Shape(q) d = Slice(n, last, end) f = Cast<to=1>(d) r = Sqrt(f) i = Div(one, r) s = Sqrt(i)
      y = Mul(q, s) })");
  ASSERT_NE(facts.facts->constant(facts.value("s")), nullptr);
  EXPECT_NEAR(*facts.facts->scalar(facts.value("s")), 0.35355339, 1e-7);
  EXPECT_EQ(facts.facts->constant(facts.value("q")), nullptr);
}

TEST(FactsChains, IfFoldsWhereItsConditionDoes) {
  const char* const kModel = R"((float[b,s] x, float[b,%s] z) => (y) <int64 one = {1}> {
      n = Shape(x) m = Shape(z) l = Gather(n, one) r = Gather(m, one) c = Equal(l, r)
      y = If(c) <then_branch = a () => (u) { u = Neg(x) },
                 else_branch = e () => (v) <int64[1] k = {0}> { w = Neg(x) v = ReduceSum(w, k) }> })";
  char text[1000];
  std::snprintf(text, sizeof(text), kModel, "s");
  EXPECT_EQ(FactsCase(text).shape("y"), "(b, s)");
  std::snprintf(text, sizeof(text), kModel, "t");
  EXPECT_EQ(FactsCase(text).shape("y"), "(?y.0, s)");
}

TEST(FactsChains, IfOfBranchesWithDifferentRanksIsUnknown) {
  FactsCase facts(R"((float[b,s] x, bool c) => (y) {
      y = If(c) <then_branch = a () => (u) { u = Neg(x) }, else_branch = e () => (v) { v = ReduceSum<keepdims=0>(x) }> })");
  EXPECT_EQ(facts.shape("y"), "unknown");
  EXPECT_EQ(facts.facts->type(facts.value("y")), onnx::TensorProto::FLOAT);
}

TEST(FactsChains, CallsOfLocalFunctionsSeeTheirInputs) {
  FactsCase facts(R"((float[b,s,64] x, float[b,t] z) => (y, w) {
      y = local.merge(x) w = local.merge(z) }
    <domain: "local", opset_import: ["": 18]> merge (u) => (v) {
      n = Shape(u) k = Constant<value_ints=[0]>() l = Gather(n, k) m = Constant<value_ints=[-1]>()
      t = Concat<axis=0>(l, m) v = Reshape(u, t) })");
  EXPECT_EQ(facts.shape("y"), "(b, 64*s)");
  EXPECT_EQ(facts.shape("w"), "(b, t)");
}

TEST(FactsChains, AttributesThatACallGivesAreNotTakenForDefaults) {
  FactsCase facts(R"((float[a,b] x) => (y) { y = local.sum<k = 1>(x) }
    <domain: "local", opset_import: ["": 18]> sum <k> (u) => (v) {
      v = ArgMax<axis: int = @k, keepdims = 0>(u) })");
  EXPECT_EQ(facts.shape("y"), "unknown");
}

TEST(FactsChains, NumbersThatACallGivesAreNotKnownInBranches) {
  FactsCase facts(R"((float[a] x, bool c) => (y) { y = local.scaled<factor = 3.0>(x, c) }
    <domain: "local", opset_import: ["": 18]> scaled <factor> (u, c) => (v) {
      v = If(c) <then_branch = t () => (p) { given = Constant<value_float: float = @factor>() p = Mul(u, given) },
                 else_branch = e () => (q) { known = Constant<value_float = 2.0>() q = Mul(u, known) }> })");
  std::map<std::string, std::optional<double>> numbers;
  for (const auto& graph : facts.view->graphs())
    for (const char* name : {"given", "known"})
      if (const Value* value = graph->find(name)) numbers[name] = facts.facts->uniform(*value);
  const std::map<std::string, std::optional<double>> expected{{"given", std::nullopt}, {"known", 2.0}};
  EXPECT_EQ(numbers, expected);
}

}  // namespace
}  // namespace attn_opt
