// Which extreme values a mask may hold.
#include "attn_opt/internal/mask_contents.h"

#include <cmath>

#include "tests/match/facts_case.h"

namespace attn_opt {
namespace {

constexpr const char* kNone = "none";
constexpr const char* kLowest = "lowest";
constexpr const char* kMinusInf = "-inf";
constexpr const char* kBoth = "lowest or -inf";

/// Of m, which NODES compute from c (bool), n (int64) and x (float, any number), all [4].
std::string contents(const std::string& nodes, const std::string& type = "float") {
  FactsCase c("(bool[4] c, int64[4] n, float[4] x) => (" + type +
              "[4] m) "
              "<float low = {-3.4028234663852886e38}, float one = {1}, float zero = {0}, float small = {-10000}> {" +
              nodes + "}");
  if (!c.view) return "no model";
  const MaskContents held = mask_contents(*c.view->main().find("m"), *c.facts);
  if (held.may_hold_lowest) return held.may_hold_minus_inf ? kBoth : kLowest;
  return held.may_hold_minus_inf ? kMinusInf : kNone;
}

/// A constant of TYPE with ELEMENTS, followed by nothing.
std::string of_constant(DataType type, const std::vector<double>& elements) {
  onnx::ModelProto model;
  model.set_ir_version(10);
  auto* import = model.add_opset_import();
  import->set_domain("");
  import->set_version(18);
  const Tensor tensor = *Tensor::of<double>({static_cast<int64_t>(elements.size())}, elements).cast(type);
  *model.mutable_graph()->add_initializer() = to_proto(tensor, "m");
  FactsCase c(std::move(model));
  const MaskContents held = mask_contents(*c.view->main().find("m"), *c.facts);
  if (held.may_hold_lowest) return held.may_hold_minus_inf ? kBoth : kLowest;
  return held.may_hold_minus_inf ? kMinusInf : kNone;
}

/// The ends of integers i, [?], which NODES compute from c (bool), n (int64) and s (float [keys]), cast to float; "any" if they
/// may be any.
std::string ends(const std::string& nodes) {
  FactsCase c(
      "(bool[4] c, int64[4] n, float[keys] s) => (float[x] m) "
      "<int64 zero = {0}, int64 one = {1}, int64 down = {-1}, int64 two = {2}, int64[2] few = {-3, 7}, int32 near = "
      "{2000000000}> {"
      "shape = Shape (s) axes = Constant <value = int64[1] {0}> () keys = Squeeze (shape, axes)" +
      nodes + "m = Cast <to = 1> (i)}");
  if (!c.view) return "no model";
  const MaskContents held = mask_contents(*c.view->main().find("m"), *c.facts);
  return held.least < -0x1p60 ? "any"
                              : std::to_string(std::llround(held.least)) + " to " + std::to_string(std::llround(held.greatest));
}

TEST(MaskContents, Integers) {
  EXPECT_EQ(ends("i = Range (zero, keys, one)"), "0 to 2147483648") << "rounded to float";
  EXPECT_EQ(ends("i = Range (keys, zero, down)"), "0 to 2147483648") << "no key, and none but 0 then";
  EXPECT_EQ(ends("r = Range (zero, keys, one) i = Sub (r, keys)"), "-2147483648 to 2147483648");
  EXPECT_EQ(ends("r = Range (zero, keys, one) d = Sub (r, keys) i = Abs (d)"), "0 to 2147483648");
  EXPECT_EQ(ends("t = Cast <to = 7> (c) i = CumSum (t, zero)"), "0 to 2147483648");
  EXPECT_EQ(ends("t = Cast <to = 7> (c) i = Mul (t, down)"), "-1 to 0");
  EXPECT_EQ(ends("i = Neg (few)"), "-7 to 3");
  EXPECT_EQ(ends("t = Cast <to = 7> (c) w = Mul (t, two) i = Min (w, one)"), "0 to 1");
  EXPECT_EQ(ends("i = Where (c, one, two)"), "1 to 2");
  EXPECT_EQ(ends("t = Cast <to = 6> (c) p = Mul (t, near) i = Cast <to = 7> (p)"), "0 to 2000000000");
  EXPECT_EQ(ends("i = Identity (n)"), "any");
  EXPECT_EQ(ends("i = Range (zero, two, n)"), "any") << "no step is known";
  EXPECT_EQ(ends("t = Cast <to = 6> (c) p = Mul (t, near) r = Add (p, p) i = Cast <to = 7> (r)"), "any") << "beyond int32";
}

TEST(MaskContents, Constants) {
  using P = onnx::TensorProto;
  EXPECT_EQ(of_constant(P::FLOAT, {0, -1e4, -1e38}), kNone);
  EXPECT_EQ(of_constant(P::FLOAT, {0, -INFINITY}), kMinusInf);
  EXPECT_EQ(of_constant(P::FLOAT, {0, std::numeric_limits<float>::lowest()}), kLowest);
  EXPECT_EQ(of_constant(P::FLOAT, {-INFINITY, std::numeric_limits<float>::lowest()}), kBoth);
  EXPECT_EQ(of_constant(P::FLOAT, {0, INFINITY, std::numeric_limits<float>::max()}), kNone);
  EXPECT_EQ(of_constant(P::FLOAT16, {0, -65504}), kLowest);
  EXPECT_EQ(of_constant(P::FLOAT16, {0, -65472}), kNone);
  EXPECT_EQ(of_constant(P::FLOAT, {0, -65504}), kNone) << "an ordinary number in float";
  EXPECT_EQ(of_constant(P::BFLOAT16, {0, lowest_finite(P::BFLOAT16)}), kLowest);
  EXPECT_EQ(of_constant(P::DOUBLE, {0, std::numeric_limits<float>::lowest()}), kNone);
  EXPECT_EQ(of_constant(P::DOUBLE, {0, std::numeric_limits<double>::lowest()}), kLowest);
}

TEST(MaskContents, Fills) {
  EXPECT_EQ(contents("m = Where (c, low, zero)"), kLowest);
  EXPECT_EQ(contents("m = Where (c, zero, small)"), kNone);
  EXPECT_EQ(contents("i = Log (zero) m = Where (c, zero, i)"), kMinusInf);
  EXPECT_EQ(contents("i = Log (zero) w = Where (c, zero, i) m = Where (c, w, low)"), kBoth);
  EXPECT_EQ(contents("m = Where (c, x, small)"), kBoth) << "x holds anything";
}

TEST(MaskContents, WhatIsChosenForZeroIsZero) {
  EXPECT_EQ(contents("b = Cast <to = 9> (x) m = Where (b, low, x)"), kLowest);
  EXPECT_EQ(contents("b = Cast <to = 9> (x) again = Cast <to = 9> (b) same = Identity (x) m = Where (again, low, same)"),
            kLowest);
  EXPECT_EQ(contents("b = Cast <to = 9> (x) m = Where (b, x, low)"), kBoth) << "x where it is not 0";
  EXPECT_EQ(contents("y = Neg (x) b = Cast <to = 9> (y) m = Where (b, low, x)"), kBoth) << "another number is tested";
}

TEST(MaskContents, LayoutChangesNothing) {
  EXPECT_EQ(contents(R"(w = Where (c, low, zero) s = Constant <value_ints = [2, 2]> () a = Reshape (w, s)
                        t = Transpose <perm = [1, 0]> (a) f = Constant <value_ints = [-1]> () m = Reshape (t, f))"),
            kLowest);
  EXPECT_EQ(contents(R"(w = Where (c, low, zero) v = Where (c, small, zero) u = Trilu (v) m = Concat <axis = 0> (u, w))"),
            kLowest);
}

TEST(MaskContents, ProductsOfBools) {
  EXPECT_EQ(contents("f = Cast <to = 1> (c) m = Mul (f, low)"), kLowest);
  EXPECT_EQ(contents("f = Cast <to = 1> (c) m = Mul (low, f)"), kLowest);
  EXPECT_EQ(contents("f = Cast <to = 1> (c) r = Sub (one, f) m = Mul (r, low)"), kLowest);
  EXPECT_EQ(contents("f = Cast <to = 1> (c) m = Mul (f, small)"), kNone);
  EXPECT_EQ(contents("f = Cast <to = 1> (n) m = Mul (f, low)"), kBoth) << "n may be 2";
  EXPECT_EQ(contents("f = Cast <to = 1> (n) m = Mul (f, small)"), kNone) << "64-bit integers are far from the range's end";
  EXPECT_EQ(contents("m = Mul (x, small)"), kBoth);
}

TEST(MaskContents, ProductsWithMinusInf) {
  EXPECT_EQ(contents("i = Log (zero) f = Cast <to = 1> (c) m = Mul (f, i)"), kBoth);
  EXPECT_EQ(contents("i = Log (zero) w = Where (c, i, zero) f = Cast <to = 1> (c) m = Mul (w, f)"), kBoth);
}

TEST(MaskContents, Sums) {
  EXPECT_EQ(contents("w = Where (c, low, zero) m = Add (w, small)"), kBoth);
  EXPECT_EQ(contents("w = Where (c, small, zero) v = Where (c, zero, small) m = Add (w, v)"), kNone);
  EXPECT_EQ(contents("f = Cast <to = 1> (c) m = Sub (one, f)"), kNone);
  EXPECT_EQ(contents("f = Cast <to = 1> (n) m = Sub (one, f)"), kNone);
}

/// The negative of what is large: 0 - inf, 0 - highest.
TEST(MaskContents, DifferencesOfLargeNumbers) {
  EXPECT_EQ(contents("i = Log (zero) p = Neg (i) w = Where (c, p, zero) m = Sub (zero, w)"), kMinusInf);
  EXPECT_EQ(contents("p = Neg (low) w = Where (c, p, zero) m = Sub (zero, w)"), kLowest)
      << "exactly that of 0 less the largest";
  EXPECT_EQ(contents("p = Neg (small) w = Where (c, p, zero) m = Sub (zero, w)"), kNone);
}

/// A sum with 0 holds what the other operand does.
TEST(MaskContents, SumsWithNothing) {
  EXPECT_EQ(contents("w = Where (c, low, zero) m = Add (w, zero)"), kLowest);
  EXPECT_EQ(contents("i = Log (zero) w = Where (c, i, zero) m = Sub (w, zero)"), kMinusInf);
  EXPECT_EQ(contents("w = Where (c, low, zero) p = Neg (w) m = Sub (zero, p)"), kLowest);
  EXPECT_EQ(contents("w = Where (c, low, zero) m = Add (w, small)"), kBoth);
}

/// Numbers held within bounds, whatever they were.
TEST(MaskContents, Bounds) {
  EXPECT_EQ(contents("m = Clip (x, small, zero)"), kNone);
  EXPECT_EQ(contents("m = Clip (x, small)"), kNone) << "the highest number above";
  EXPECT_EQ(contents("m = Clip (x)"), kLowest) << "without bounds infinities become the ends";
  EXPECT_EQ(contents("m = Max (x, small)"), kNone);
  EXPECT_EQ(contents("m = Min (small, x)"), kBoth);
  EXPECT_EQ(contents("i = Log (zero) w = Where (c, zero, i) m = Max (w, low)"), kLowest);
  EXPECT_EQ(contents("i = Log (zero) w = Where (c, zero, i) m = Min (w, small)"), kMinusInf);
  EXPECT_EQ(contents("h = Clip (x, small, zero) m = Neg (h)"), kNone);
  EXPECT_EQ(contents("h = Max (x, zero) m = Neg (h)"), kBoth) << "the negative of +inf";
  EXPECT_EQ(contents("m = Clip (x, zero, small)"), kBoth) << "bounds in the wrong order";
}

/// Logarithms and inverses of two numbers are two again.
TEST(MaskContents, FunctionsOfOnesAndZeros) {
  EXPECT_EQ(contents("t = Cast <to = 1> (c) m = Log (t)"), kMinusInf);
  EXPECT_EQ(contents("t = Cast <to = 1> (c) i = Reciprocal (t) m = Neg (i)"), kMinusInf);
  EXPECT_EQ(contents("t = Cast <to = 1> (c) i = Log (t) m = Add (i, small)"), kMinusInf);
  EXPECT_EQ(contents("m = Log (x)"), kMinusInf);
}

TEST(MaskContents, SumsThatLeaveTheRange) {
  EXPECT_EQ(contents(R"(k = Constant <value = float {-2e38}> () w = Where (c, k, zero) m = Add (w, w))"), kBoth);
}

TEST(MaskContents, CastsToASmallerRange) {
  EXPECT_EQ(contents("w = Where (c, low, zero) m = Cast <to = 10> (w)", "float16"), kMinusInf);
  EXPECT_EQ(contents("w = Where (c, small, zero) m = Cast <to = 10> (w)", "float16"), kNone);
  EXPECT_EQ(
      contents("f = Cast <to = 1> (c) b = Mul (small, small) d = Neg (b) p = Mul (f, d) m = Cast <to = 10> (p)", "float16"),
      kMinusInf)
      << "0 or -1e8";
  EXPECT_EQ(contents("f = Cast <to = 1> (n) b = Mul (f, small) m = Cast <to = 10> (b)", "float16"), kBoth)
      << "any number, -65504 among them";
  EXPECT_EQ(
      contents("z = Cast <to = 16> (zero) l = Cast <to = 16> (small) w = Where (c, z, l) m = Cast <to = 10> (w)", "float16"),
      kNone)
      << "bfloat16 is as long as float16, not as small";
  EXPECT_EQ(contents("l = Cast <to = 16> (low) w = Where (c, l, l) m = Cast <to = 10> (w)", "float16"), kMinusInf);
  EXPECT_EQ(contents("m = Cast <to = 10> (n)", "float16"), kBoth) << "-100000 becomes -inf";
  EXPECT_EQ(contents("m = Cast <to = 10> (c)", "float16"), kNone);
}

TEST(MaskContents, CastsToALargerRange) {
  EXPECT_EQ(contents("l = Constant <value = float16 {-65504}> () z = Constant <value = float16 {0}> () "
                     "w = Where (c, l, z) m = Cast <to = 1> (w)"),
            kNone);
  EXPECT_EQ(contents("i = Log (zero) l = Cast <to = 10> (i) z = Cast <to = 10> (zero) w = Where (c, l, z) "
                     "m = Cast <to = 1> (w)"),
            kMinusInf);
}

TEST(MaskContents, Scattered) {
  const std::string nodes = R"(f = Cast <to = 1> (c) z = Mul (f, zero) i = Constant <value = int64[1,1] {0}> ()
      u = Constant <value = float[1] {-3.4028234663852886e38}> () m = ScatterND )";
  EXPECT_EQ(contents(nodes + "(z, i, u)"), kLowest);
  EXPECT_EQ(contents(nodes + "<reduction = \"add\"> (z, i, u)"), kBoth);
}

TEST(MaskContents, WhatIsNotKnown) {
  EXPECT_EQ(contents("m = Identity (x)"), kBoth);
  EXPECT_EQ(contents("m = Exp (x)"), kBoth);
  EXPECT_EQ(contents("m = other.Op (x)"), kBoth);
  EXPECT_EQ(contents("a = other.Op (c) m = Cast <to = 1> (a)"), kBoth) << "a type that is not known";
  EXPECT_EQ(contents("a = other.Op (c) b = other.Op (c) m = Where (c, a, b)"), kBoth);
}

/// A model that no check has seen may lack inputs.
TEST(MaskContents, MissingInputs) {
  EXPECT_EQ(contents("m = Where (c, , zero)"), kBoth);
  EXPECT_EQ(contents("i = Constant <value = int64[1,1] {0}> () m = ScatterND (small, i)"), kBoth);
  EXPECT_EQ(contents("m = Add (small)"), kBoth);
}

TEST(MaskContents, LongChainsEnd) {
  std::string nodes = "v0 = Where (c, small, zero) ";
  for (int i = 1; i <= 5000; ++i) nodes += "v" + std::to_string(i) + " = Where (c, v" + std::to_string(i - 1) + ", zero) ";
  EXPECT_EQ(contents(nodes + "m = Identity (v5000)"), kBoth);
}

}  // namespace
}  // namespace attn_opt
