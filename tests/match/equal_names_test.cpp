// Names of sizes that operators of attention need equal: which are one size, and which stay apart.
#include "tests/match/facts_case.h"

namespace attn_opt {
namespace {

constexpr const char* kInputs =
    "(float[a,s,16] q, float[b,t,16] k, float[c,u,16] v, float[d,2,p,8] past_key, float[e,2,r,8] past_value)";
constexpr const char* kAttention =
    "y, pk, pv = com.microsoft.MultiHeadAttention <num_heads = 2> (q, k, v, , , , past_key, past_value)";

/// The shapes of K and of the past values, where NODES make the output y of the graph.
std::string shapes(const std::string& nodes, const std::string& inputs = kInputs) {
  FactsCase c(inputs + " => (float[] y) { " + nodes + " }");
  return c.shape("k") + " " + c.shape("past_value");
}

TEST(EqualNames, AreThoseOfTheQuery) { EXPECT_EQ(shapes(kAttention), "(a, t, 16) (a, 2, p, 8)"); }

TEST(EqualNames, ANumberStandsForAName) {
  const std::string inputs =
      "(float[a,s,16] q, float[3,t,16] k, float[c,u,16] v, float[d,2,p,8] past_key, float[e,2,5,8] past_value)";
  EXPECT_EQ(shapes(kAttention, inputs), "(3, t, 16) (3, 2, 5, 8)");
}

TEST(EqualNames, OfACacheAreHeadsAndTheirSize) {
  const auto known = [](const std::string& nodes) {
    FactsCase c(
        "(float[b,s,64] q, float[b,s,32] k, float[b,h,p,size] past_key, float[b,g,p,width] past_value, int32[b] lengths, "
        "int32 total) => (float[] y) { " +
        nodes + " }");
    return c.shape("past_key") + " " + c.shape("past_value");
  };
  EXPECT_EQ(known("y, pk, pv = com.microsoft.GroupQueryAttention <num_heads = 4, kv_num_heads = 2> "
                  "(q, k, k, past_key, past_value, lengths, total)"),
            "(b, 2, p, 16) (b, 2, p, 16)");
  EXPECT_EQ(known("y, pk, pv = com.microsoft.GroupQueryAttention <num_heads = 4, kv_num_heads = 2> "
                  "(q, , , past_key, past_value, lengths, total)"),
            "(b, 2, p, 8) (b, 2, p, 8)")
      << "keys and values are packed behind the queries";
  EXPECT_EQ(known("y, pk, pv = com.microsoft.MultiHeadAttention <num_heads = 4> (q, k, k, , , , past_key, past_value)"),
            "(b, 4, p, 16) (b, 4, p, width)")
      << "values have a size of their own";
}

TEST(EqualNames, AreThoseOfWhatOperandsAreComputedFrom) {
  EXPECT_EQ(shapes("q2 = Relu(q) k2 = Relu(k) y, pk, pv = com.microsoft.MultiHeadAttention <num_heads = 2> "
                   "(q2, k2, v, , , , past_key, past_value)"),
            "(a, t, 16) (a, 2, p, 8)");
}

TEST(EqualNames, StayApartWhereNoRunNeedsThem) {
  const std::string apart = "(b, t, 16) (e, 2, r, 8)";
  EXPECT_EQ(shapes(std::string("x, pk, pv = com.microsoft.MultiHeadAttention <num_heads = 2> (q, k, v, , , , past_key, ") +
                   "past_value) y = Relu(q)"),
            apart)
      << "runtimes leave out a dead node";
  EXPECT_EQ(shapes(R"(sizes = Shape(q) one = ReduceMax<keepdims = 0>(sizes) two = ReduceMin<keepdims = 0>(sizes)
                      some = Equal(one, two) y = If(some) <
                        then_branch = t () => (float[] x) {
                          x, pk, pv = com.microsoft.MultiHeadAttention <num_heads = 2> (q, k, v, , , , past_key, past_value) },
                        else_branch = f () => (float[] z) { z = Relu(q) }>)"),
            apart)
      << "a branch may not be taken";
  EXPECT_EQ(shapes("y = Add(k, v)"), apart) << "what broadcasts may be 1";
}

TEST(EqualNames, AreThoseOfBothBranches) {
  const auto with_branches = [](const std::string& past) {
    return std::string(R"(sizes = Shape(q) one = ReduceMax<keepdims = 0>(sizes) two = ReduceMin<keepdims = 0>(sizes)
        some = Equal(one, two) y = If(some) <
          then_branch = t () => (float[] x) {
            x, p1, p2 = com.microsoft.MultiHeadAttention <num_heads = 2> (q, k, v, , , , past_key, past_value) },
          else_branch = f () => (float[] z) { z, p3, p4 = com.microsoft.MultiHeadAttention <num_heads = 2> (q, k, v)") +
           past + ") }>";
  };
  EXPECT_EQ(shapes(with_branches(", , , , past_key, past_value")), "(a, t, 16) (a, 2, p, 8)");
  EXPECT_EQ(shapes(with_branches("")), "(a, t, 16) (e, 2, r, 8)");
}

TEST(EqualNames, AreReplacedWithinSumsAndQuotients) {
  FactsCase c(R"x((float[a,s,16] q, float[b,t,16] k, float[b,t,16] v, float["2*b","floor(b/3)"] x) => (float[] y, float[] z) {
                 y = com.microsoft.MultiHeadAttention <num_heads = 2> (q, k, v) z = Relu(x) })x");
  EXPECT_EQ(c.shape("x"), "(2*a, floor(a/3))");
}

TEST(EqualNames, OfAMaskOfOneRowStayOpen) {
  FactsCase c(R"((float[a,2,l,8] q, float[b,2,s,8] k, float[b,2,s,8] v, float[m,1,1,7] mask, float[5,1,l,1] other)
                 => (float[] y, float[] z) { y = Attention(q, k, v, mask) z = Attention(q, k, v, other) })",
              23);
  EXPECT_EQ(c.shape("mask"), "(m, 1, 1, 7)") << "m may be 1";
  EXPECT_EQ(c.shape("k"), "(5, 2, 7, 8)");
}

}  // namespace
}  // namespace attn_opt
