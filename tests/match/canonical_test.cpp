// Nodes that change nothing, each beside one that nearly does not.
#include "attn_opt/canonical.h"

#include <ctime>

#include "tests/match/facts_case.h"

namespace attn_opt {
namespace {

/// True if y, which NODES compute from x (float[s, 4]), is seen as x itself.
bool is_copy(const std::string& nodes, int opset = 18) {
  FactsCase c(
      "(float[s,4] x, float[s,4] other_input, int64[2] shape, float[1,4] row, bool flag) => (float[a,b] y) {" + nodes + "}",
      opset);
  if (!c.view) return false;
  return &canonical(*c.view->main().find("y"), *c.facts) == c.view->main().find("x");
}

TEST(Canonical, Identity) {
  EXPECT_TRUE(is_copy("y = Identity (x)"));
  EXPECT_FALSE(is_copy("y = Abs (x)"));
  EXPECT_FALSE(is_copy("y = other.Identity (x)"));
}

TEST(Canonical, Casts) {
  EXPECT_TRUE(is_copy("y = Cast <to = 1> (x)"));
  EXPECT_FALSE(is_copy("y = Cast <to = 10> (x)"));
  EXPECT_FALSE(is_copy("h = Cast <to = 10> (x) y = Cast <to = 1> (h)"));
  EXPECT_TRUE(is_copy("y = CastLike (x, other_input)"));
  EXPECT_FALSE(is_copy("y = CastLike (x, shape)"));
}

TEST(Canonical, CastOfAnUnknownType) {
  FactsCase c("(float[4] x) => (float[4] y) { a = other.Op (x) y = Cast <to = 1> (a) }");
  EXPECT_EQ(&canonical(*c.view->main().find("y"), *c.facts), c.view->main().find("y"));
}

TEST(Canonical, Reshape) {
  EXPECT_TRUE(is_copy("k = Constant <value_ints = [-1, 4]> () y = Reshape (x, k)"));
  EXPECT_TRUE(is_copy("k = Constant <value_ints = [0, 4]> () y = Reshape (x, k)"));
  EXPECT_TRUE(is_copy("k = Shape (x) y = Reshape (x, k)"));
  EXPECT_FALSE(is_copy("k = Constant <value_ints = [4, -1]> () y = Reshape (x, k)"));
  EXPECT_FALSE(is_copy("k = Constant <value_ints = [-1, 2, 2]> () y = Reshape (x, k)"));
  EXPECT_FALSE(is_copy("y = Reshape (x, shape)"));
}

TEST(Canonical, Expand) {
  EXPECT_TRUE(is_copy("k = Constant <value_ints = [1, 4]> () y = Expand (x, k)"));
  EXPECT_TRUE(is_copy("k = Constant <value_ints = [1]> () y = Expand (x, k)"));
  EXPECT_FALSE(is_copy("k = Constant <value_ints = [2, 1, 4]> () y = Expand (x, k)"));
  EXPECT_FALSE(is_copy("y = Expand (x, shape)"));
  FactsCase c("(float[1,4] x) => (float[3,4] y) { k = Constant <value_ints = [3, 4]> () y = Expand (x, k) }");
  EXPECT_EQ(canonical(*c.view->main().find("y"), *c.facts).producer->op(), "Expand") << "it enlarges";
}

TEST(Canonical, Tile) {
  EXPECT_TRUE(is_copy("k = Constant <value_ints = [1, 1]> () y = Tile (x, k)"));
  EXPECT_FALSE(is_copy("k = Constant <value_ints = [1, 2]> () y = Tile (x, k)"));
}

TEST(Canonical, Slice) {
  const auto slice = [](const std::string& start, const std::string& end, const std::string& step) {
    return "a = Constant <value_ints = [" + start + "]> () b = Constant <value_ints = [" + end +
           "]> () k = Constant <value_ints = [1]> () s = Constant <value_ints = [" + step + "]> () y = Slice (x, a, b, k, s)";
  };
  EXPECT_TRUE(is_copy(slice("0", "4", "1")));
  EXPECT_TRUE(is_copy(slice("0", "9223372036854775807", "1")));
  EXPECT_FALSE(is_copy(slice("-1", "-9223372036854775807", "-1"))) << "reversed, of the same shape";
  EXPECT_FALSE(is_copy(slice("1", "4", "1")));
  EXPECT_FALSE(is_copy(slice("0", "4", "2")));
  EXPECT_TRUE(is_copy("y = Slice <starts = [0], ends = [4], axes = [1]> (x)", 9));
  EXPECT_FALSE(is_copy("y = Slice <starts = [0], ends = [3], axes = [1]> (x)", 9));
}

TEST(Canonical, Transpose) {
  EXPECT_TRUE(is_copy("y = Transpose <perm = [0, 1]> (x)"));
  EXPECT_FALSE(is_copy("y = Transpose <perm = [1, 0]> (x)"));
  EXPECT_FALSE(is_copy("y = Transpose (x)")) << "without perm it reverses";
}

TEST(Canonical, OfOne) {
  EXPECT_TRUE(is_copy("y = Concat <axis = 0> (x)"));
  EXPECT_FALSE(is_copy("y = Concat <axis = 0> (x, x)"));
  EXPECT_TRUE(is_copy("y = Sum (x)"));
  EXPECT_FALSE(is_copy("y = Sum (x, x)"));
}

TEST(Canonical, Dropout) {
  EXPECT_TRUE(is_copy("y = Dropout (x)"));
  EXPECT_TRUE(is_copy("r = Constant <value_float = 0.5> () y = Dropout (x, r)"));
  EXPECT_TRUE(is_copy("t = Constant <value = bool {0}> () y = Dropout (x, , t)"));
  EXPECT_FALSE(is_copy("t = Constant <value = bool {1}> () y = Dropout (x, , t)")) << "training";
  EXPECT_FALSE(is_copy("y = Dropout (x, , flag)")) << "perhaps training";
  EXPECT_TRUE(is_copy("y = Dropout <ratio = 0.5> (x)", 10));
  EXPECT_TRUE(is_copy("y = Dropout <ratio = 0.5, is_test = 1> (x)", 6));
  EXPECT_FALSE(is_copy("y = Dropout <ratio = 0.5> (x)", 6)) << "training was the default before opset 7";
}

TEST(Canonical, DropoutsMaskIsNoCopy) {
  FactsCase c("(float[4] x) => (float[4] y, bool[4] m) { y, m = Dropout (x) }");
  EXPECT_EQ(&canonical(*c.view->main().find("m"), *c.facts), c.view->main().find("m"));
}

TEST(Canonical, AxesOfOne) {
  EXPECT_TRUE(is_copy("y = Flatten (x)"));
  EXPECT_FALSE(is_copy("y = Flatten <axis = 0> (x)"));
  EXPECT_FALSE(is_copy("k = Constant <value_ints = [0]> () y = Unsqueeze (x, k)"));
  EXPECT_FALSE(is_copy("y = Squeeze (row)"));
}

TEST(Canonical, ChosenEverywhere) {
  const std::string yes = "t = Constant <value = bool {1}> () z = Constant <value_float = 0.0> () ";
  EXPECT_TRUE(is_copy(yes + "y = Where (t, x, z)"));
  EXPECT_FALSE(is_copy(yes + "y = Where (t, z, x)"));
  EXPECT_TRUE(is_copy(yes + "n = Not (t) y = Where (n, z, x)"));
  EXPECT_TRUE(is_copy(yes + "k = Shape (x) e = Expand (t, k) y = Where (e, x, other_input)"));
  EXPECT_FALSE(is_copy(yes + "y = Where (flag, x, other_input)"));
  EXPECT_TRUE(is_copy("i = Identity (x) y = Where (flag, x, i)"));
  EXPECT_TRUE(is_copy("y = Max (x, x)"));
  EXPECT_FALSE(is_copy("y = Min (x, other_input)"));
}

TEST(Canonical, BeyondAllNumbers) {
  const std::string infinite = "l = Constant <value = float {-inf}> () g = Constant <value = float {inf}> () ";
  EXPECT_TRUE(is_copy(infinite + "y = Max (x, l)"));
  EXPECT_TRUE(is_copy(infinite + "y = Min (g, x)"));
  EXPECT_FALSE(is_copy(infinite + "y = Min (x, l)"));
  EXPECT_TRUE(is_copy("o = Constant <value_float = 1.0> () y = Pow (x, o)"));
  EXPECT_FALSE(is_copy("o = Constant <value_float = 1.0> () y = Pow (o, x)"));
}

TEST(Canonical, CutBack) {
  const auto cut = [](const std::string& first, const std::string& end, const std::string& axis) {
    return "a = Constant <value_ints = [" + first + "]> () b = Constant <value_ints = [" + end +
           "]> () c = Constant <value_ints = [" + axis + "]> () y = Slice (w, a, b, c)";
  };
  const std::string padded = "p = Constant <value_ints = [1, 2, 3, 0]> () w = Pad (x, p) ";
  EXPECT_TRUE(is_copy(padded + cut("1, 2", "-3, 6", "0, 1")));
  EXPECT_FALSE(is_copy(padded + cut("1, 1", "-3, 5", "0, 1")));
  EXPECT_FALSE(is_copy(padded + cut("2, 2", "-2, 6", "0, 1")));
  const std::string joined = "w = Concat <axis = 1> (other_input, x, other_input) ";
  EXPECT_TRUE(is_copy(joined + cut("4", "8", "1")));
  EXPECT_FALSE(is_copy(joined + cut("3", "7", "1")));
  EXPECT_FALSE(is_copy(joined + cut("0", "4", "1")));
  EXPECT_TRUE(is_copy(joined + "k = Constant <value_ints = [4, 4, 4]> () u, y, v = Split <axis = 1> (w, k)"));
  EXPECT_FALSE(is_copy(joined + "k = Constant <value_ints = [4, 4, 4]> () u, v, y = Split <axis = 1> (w, k)"));
}

TEST(Canonical, ReducedAxisThatWasAdded) {
  const std::string added = "k = Constant <value_ints = [1]> () u = Unsqueeze (x, k) ";
  EXPECT_TRUE(is_copy(added + "y = ReduceMax <keepdims = 0> (u, k)"));
  EXPECT_FALSE(is_copy(added + "y = ReduceL2 <keepdims = 0> (u, k)"));
  EXPECT_FALSE(is_copy("k = Constant <value_ints = [1]> () y = ReduceMax (x, k)"));
}

TEST(Canonical, OneOfASequence) {
  const std::string sequence = "s = SequenceConstruct (other_input, x) ";
  EXPECT_TRUE(is_copy(sequence + "k = Constant <value_int = 1> () y = SequenceAt (s, k)"));
  EXPECT_TRUE(is_copy(sequence + "k = Constant <value_int = -1> () y = SequenceAt (s, k)"));
  EXPECT_FALSE(is_copy(sequence + "k = Constant <value_int = 0> () y = SequenceAt (s, k)"));
}

TEST(Canonical, ChainsOfAnyLength) {
  std::string nodes = "v0 = Identity (x) ";
  for (int i = 1; i < 2000; ++i)
    nodes += "v" + std::to_string(i) + " = " + (i % 2 ? "Cast <to = 1>" : "Identity") + " (v" + std::to_string(i - 1) + ") ";
  EXPECT_TRUE(is_copy(nodes + "y = Identity (v1999)"));
}

TEST(Canonical, NoWayIsGoneTwice) {
  // Gone anew for each of them, the ways through these nodes take minutes.
  constexpr int kCount = 50000;
  std::string nodes = "v0 = Max (x, x) ";
  for (int i = 1; i < kCount; ++i) {
    const std::string before = "v" + std::to_string(i - 1);
    nodes += "v" + std::to_string(i) + " = " + (i % 2 ? "Max" : "Min") + " (" + before + ", " + before + ") ";
  }
  FactsCase c("(float[4] x) => (float[4] y) {" + nodes + "y = Neg (v" + std::to_string(kCount - 1) + ") }");
  const std::clock_t begin = std::clock();
  for (int i = 0; i < kCount; ++i)
    ASSERT_EQ(&canonical(*c.view->main().find("v" + std::to_string(i)), *c.facts), c.view->main().find("x"));
  EXPECT_LT(std::clock() - begin, 20 * CLOCKS_PER_SEC);
}

TEST(Canonical, Producer) {
  FactsCase c("(float[4] x) => (float[4] y) { a = Abs (x) y = Identity (a) z = Identity (x) }");
  EXPECT_EQ(canonical(*c.view->main().find("y"), *c.facts).producer, c.view->main().find("a")->producer);
  EXPECT_EQ(canonical(*c.view->main().find("z"), *c.facts).producer, nullptr);
}

}  // namespace
}  // namespace attn_opt
