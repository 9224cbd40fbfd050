// Sizes that are equal in every run of the model, beside those that are in some: each law, and what must stay assumed.
#include <gmock/gmock.h>

#include "attn_opt/facts.h"
#include "tests/match/facts_case.h"

namespace attn_opt {
namespace {

/// The assumptions that the shape of READ rests on, "+" before those that are proven.
std::string proofs(const std::string& graph, const std::string& read = "y") {
  FactsCase facts(graph);
  std::string text;
  facts.shape(read);
  Value* const values[] = {facts.view->main().find(read)};
  for (const SizeAssumption& assumption : facts.facts->assumptions()) {
    const bool proven = facts.facts->proves(assumption, values);
    text += (text.empty() ? "" : "; ") + std::string(proven ? "+" : "") + assumption.one.str() + " = " + assumption.other.str();
  }
  return text;
}

/// Rows 0 to s of a table of ROWS, s being the length of x.
std::string of_table(const std::string& rows, const std::string& nodes) {
  return "(float[b,s,8] x, float[" + rows +
         ",8] table) => (float[b,n,8] y) <int64 one = {1}, int64[1] first = {0}> {"
         " sizes = Shape(x) s0 = Gather(sizes, one) s1 = Unsqueeze(s0, first) rows = Slice(table, first, s1) " +
         nodes + " }";
}

TEST(SizeProofs, ASliceOfATableThatBroadcastsAgainstItsLengthIsAsLong) {
  EXPECT_EQ(proofs(of_table("64", "y = Add(x, rows)")), "+s = min(64, s)");
  EXPECT_EQ(proofs(of_table(
                "64", "wide = Unsqueeze(rows, first) cast = Identity(wide) mask = Cast<to = 9>(x) y = Where(mask, cast, x)")),
            "+s = min(64, s)")
      << "behind layouts";
}

TEST(SizeProofs, ATableOfOneRowBroadcastsAgainstAnyLength) {
  EXPECT_EQ(proofs(of_table("1", "y = Add(x, rows)")), "s = min(1, s)");
  EXPECT_EQ(proofs(of_table("t", "y = Add(x, rows)")).find('+'), std::string::npos) << "t may be 1";
}

TEST(SizeProofs, ASliceThatNothingNeedsAtItsLengthIsNot) {
  EXPECT_EQ(proofs(of_table("64", "y = Unsqueeze(rows, first)")), "s = min(64, s)");
  EXPECT_EQ(proofs(of_table("64", "y = Unsqueeze(rows, first) dead = Add(x, rows)")), "s = min(64, s)")
      << "runtimes leave out dead nodes";
}

TEST(SizeProofs, TwoSlicesOfOneLengthSayNothingOfIt) {
  EXPECT_EQ(proofs(of_table("64", "again = Slice(table, first, s1) y = Add(rows, again)")), "s = min(64, s)");
}

TEST(SizeProofs, WhatABranchNeedsIsNotNeededOutsideOfIt) {
  EXPECT_EQ(
      proofs(
          R"((float[b,s,8] x, float[64,8] table, bool c) => (float[n,8] y, float[b,n,8] z) <int64 one = {1}, int64[1] first = {0}> {
      sizes = Shape(x) s0 = Gather(sizes, one) s1 = Unsqueeze(s0, first) rows = Slice(table, first, s1)
      y = Identity(rows)
      z = If(c) <then_branch = t () => (float[b,n,8] u) { u = Add(x, rows) }, else_branch = e () => (float[b,n,8] v) { v = Identity(x) }> })"),
      "s = min(64, s)");
}

TEST(SizeProofs, AProductNeedsItsInnerSizesEqual) {
  EXPECT_EQ(proofs(of_table("64", "xt = Transpose<perm = [0, 2, 1]>(x) w = MatMul(x, xt) y = MatMul(w, rows)")),
            "+s = min(64, s)");
  EXPECT_EQ(proofs(of_table("64", "xt = Transpose<perm = [0, 2, 1]>(x) y = MatMul(rows, xt)")), "s = min(64, s)")
      << "an outer size";
}

TEST(SizeProofs, ConcatNeedsItsOtherSizesEqual) {
  EXPECT_EQ(proofs(R"((float[s,4] x, float[64,8] table) => (float[s,12] y) <int64[1] first = {0}, int64 zero = {0}> {
      sizes = Shape(x) s0 = Gather(sizes, zero) s1 = Unsqueeze(s0, first) rows = Slice(table, first, s1)
      y = Concat<axis = 1>(x, rows) })"),
            "+s = min(64, s)");
}

constexpr char kLastRows[] =
    R"((float[b,s,8] x) => (float[b,n,8] y) <int64[1] eight = {8}, int64[1] one = {1}, int64[1] far = {9000000000}> {
    cut = Slice(x, eight, far, one) )";

TEST(SizeProofs, WhatIsLeftOfASliceIsNotEmptyWhereTheAttentionReadsIt) {
  EXPECT_EQ(proofs(std::string(kLastRows) + "y = Identity(cut) }"), "+s - 8 = max(0, s - 8)");
  EXPECT_EQ(proofs(std::string(kLastRows) + "y = Concat<axis = 1>(x, cut) }"), "s - 8 = max(0, s - 8)")
      << "nothing may be joined";
}

TEST(SizeProofs, PartsBesideEachOtherAreAsLongWhateverEachIs) {
  const auto cut = [](const std::string& at, const std::string& head_end, const std::string& last) {
    return "(float[b,s,8] x) => (float[b,n,8] y) <int64[1] at = {" + at + "}, int64[1] head_end = {" + head_end +
           "}, int64[1] first = {0}, int64[1] far = {9000000000}, int64[1] axis = {1}> {"
           " tail = Slice(x, at, far, axis) head = Slice(x, first, head_end, axis) " +
           last + " }";
  };
  const auto rolled = [&](const std::string& at, const std::string& last) { return cut(at, at, last); };
  EXPECT_EQ(proofs(rolled("3", "y = Concat<axis = 1>(tail, head)")), "");
  EXPECT_EQ(proofs(rolled("-3", "y = Concat<axis = 1>(tail, head)")), "");
  EXPECT_EQ(proofs(rolled("3", "z = Concat<axis = 1>(tail, head) y = Identity(tail)")), "") << "read on its own";
  EXPECT_EQ(proofs(cut("3", "2", "y = Concat<axis = 1>(tail, head)")), "s - 3 = max(0, s - 3)") << "with a gap";
}

TEST(SizeProofs, PartsAreBesideEachOtherBehindCopiesOfTheWhole) {
  const auto copied = [](const std::string& copy) {
    return "(float[b,s,8] x) => (float[b,n,8] y) <int64[1] at = {3}, int64[1] first = {0}, int64[1] far = {9000000000},"
           " int64[1] axis = {1}, int64[0] scalar = {}, float zero = {0}> {"
           " zeros = ConstantOfShape(scalar) copy = " +
           copy + " tail = Slice(copy, at, far, axis) head = Slice(x, first, at, axis) y = Concat<axis = 1>(tail, head) }";
  };
  for (const char* copy : {"Identity(x)", "Add(x, zero)", "Add(zero, x)", "Add(x, zeros)", "Add(zeros, x)"})
    EXPECT_EQ(proofs(copied(copy)), "") << copy;
}

TEST(SizeProofs, SumsOfSizesThatAreNotEmptyAreNotNegative) {
  const auto numbers = [](const std::string& less) {
    return "(float[b,s,8] x) => (float[b,s,8] y) <int64 one = {1}, int64 two = {2}, int64 zero = {0}, int64 less = {" + less +
           "}> {"
           " sizes = Shape(x) s0 = Gather(sizes, one) s2 = Mul(s0, two) s3 = Sub(s2, less) all = Range(zero, s3, one)"
           " floats = Cast<to = 1>(all) sum = ReduceSum<keepdims = 0>(floats) y = Add(x, sum) }";
  };
  EXPECT_EQ(proofs(numbers("2")), "+2*s - 2 = max(0, 2*s - 2)");
  EXPECT_EQ(proofs(numbers("3")), "2*s - 3 = max(0, 2*s - 3)");
}

TEST(SizeProofs, AConvolutionNeedsRowsForItsKernel) {
  const auto convolved = [](const std::string& read) {
    return "(float[b,8,s,8] x, float[8,8,3,3] w) => (float[b,8,n,8] y) <int64 two = {2}, int64 axis = {2}, int64[1] first = "
           "{0}, int64 zero = {0}, int64 one = {1}> {"
           " sizes = Shape(x) s0 = Gather(sizes, axis) s2 = Sub(s0, two) all = Range(zero, s2, one) floats = Cast<to = 1>(all)"
           " sum = ReduceSum<keepdims = 0>(floats) c = Conv(x, w) z = Add(" +
           read + ", sum) y = Identity(z) }";
  };
  EXPECT_EQ(proofs(convolved("c")), "+s - 2 = max(0, s - 2)");
  EXPECT_EQ(proofs(convolved("x")), "s - 2 = max(0, s - 2)") << "runtimes leave out dead nodes";
}

TEST(SizeProofs, WhatBroadcastsToASizeThatIsNotEmptyIsNotEmpty) {
  const auto offset = [](const std::string& last) {
    return "(float[b,p,8] x, float[b,t,8] table, float[b,s,8] q) => (float[b,n,8] y) <int64 one = {1}, int64[1] first = {0},"
           " int64[1] far = {9000000000}, int64[1] axis = {1}> {"
           " sizes = Shape(x) p0 = Gather(sizes, one) p1 = Unsqueeze(p0, first) rows = Slice(table, p1, far, axis) sum = "
           "Add(q, rows) " +
           last + " }";
  };
  EXPECT_THAT(proofs(offset("y = Identity(sum)"), "sum"), ::testing::HasSubstr("+-p + t = max(-p + t, 0)"));
  EXPECT_THAT(proofs(offset("y = Identity(sum)"), "sum"), ::testing::Not(::testing::HasSubstr("+s = "))) << "either may be 1";
  EXPECT_THAT(proofs(offset("y = Concat<axis = 1>(sum, q)")), ::testing::Not(::testing::HasSubstr("+-p")))
      << "sum may be empty";
}

TEST(SizeProofs, SizesOfWhatIsReadAreAtLeastOne) {
  EXPECT_EQ(
      proofs(
          R"((float[b,s,8] x) => (float[b,1,8] y) <int64[1] first = {0}, int64[1] one = {1}> { y = Slice(x, first, one, one) })"),
      "1 = min(1, s)")
      << "x may be empty";
}

TEST(SizeProofs, OneProofServesTheNext) {
  EXPECT_EQ(proofs(of_table("64", R"(sum = Add(x, rows) more = Shape(sum) m0 = Gather(more, one) m1 = Unsqueeze(m0, first)
      others = Slice(other, first, m1) y = Add(sum, others) )")
                       .replace(1, 0, "float[32,8] other, ")),
            "+s = min(64, s); +s = min(32, s)");
}

}  // namespace
}  // namespace attn_opt
