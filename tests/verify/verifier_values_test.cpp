// Edits that are no attention: what is drawn for them, and how they are judged.
#include <gmock/gmock.h>

#include "tests/verify/site_fixture.h"

namespace attn_opt {
namespace {

using ::testing::HasSubstr;
using Make = std::function<Value*(GraphBuilder& build, SiteFixture& site)>;

/// y, of NODES over x and the indices i, against what MAKE makes.
Verification verdict(const std::string& nodes, const Make& make, const std::string& type = "float") {
  SiteFixture site("<ir_version: 8, opset_import: [\"\" : 24]> g (" + type + "[b, 8] x, int64[b] i) => (" + type +
                   "[b, 8] y) {" + nodes + "}");
  Emission emission{.edit = site.edit()};
  const SharedNodes none;
  GraphBuilder build(emission.edit, none, "made");
  Value* made = make(build, site);
  emission.edit.take_over(*site.value("y"), *made);
  emission.removed = emission.edit.would_remove();
  Verifier verifier(site.context(), inline_tensors(), {});
  return verifier.verify(emission);
}

Make unary(const std::string& op) {
  return [op](GraphBuilder& build, SiteFixture& site) { return build.node(op, {site.value("x")}); };
}

TEST(VerifierValues, RightOnesInEveryType) {
  for (const std::string type : {"float", "float16", "double", "bfloat16", "int32"}) {
    const auto result = verdict("n = Neg (x) y = Neg (n)", unary("Identity"), type);
    EXPECT_EQ(result.verdict, Verdict::kVerified) << type << ": " << result.reason;
    EXPECT_GE(result.draws, 2) << type;
  }
}

TEST(VerifierValues, WrongOnesSayByHowMuch) {
  const auto result = verdict("n = Neg (x) y = Relu (n)", unary("Relu"));
  EXPECT_EQ(result.verdict, Verdict::kFailed);
  EXPECT_THAT(result.reason, HasSubstr("y differs by 1.7 relative to its row at (2, 7): 0 before, 1.5"));
  const auto of_zeros = verdict("a = Abs (x) n = Neg (a) y = Relu (n)", unary("Abs"));
  EXPECT_EQ(of_zeros.verdict, Verdict::kFailed);
  EXPECT_THAT(of_zeros.reason, HasSubstr("y differs where its row is 0, at ("));
}

TEST(VerifierValues, IntegersMustBeEqualAndAreNegativeToo) {
  EXPECT_EQ(verdict("y = Abs (x)", unary("Identity"), "int64").verdict, Verdict::kFailed);
  EXPECT_EQ(verdict("n = Abs (x) y = Abs (n)", unary("Abs"), "int64").verdict, Verdict::kVerified);
}

TEST(VerifierValues, TwoNamesOfOneValueAreDrawnAsOne) {
  const auto doubled = [](GraphBuilder& build, SiteFixture& site) {
    return build.node("Add", {site.value("c"), site.value("c")});
  };
  for (const std::string copy : {"c = Identity (x)", "t = Transpose<perm = [1, 0]> (x) c = Transpose<perm = [1, 0]> (t)",
                                 "a = Identity (x) c = Identity (x)"}) {
    const std::string other = copy.starts_with("a") ? "a" : "x";
    const auto result = verdict(copy + " n = Neg (c) y = Sub (" + other + ", n)", doubled);
    EXPECT_EQ(result.verdict, Verdict::kVerified) << copy << ": " << result.reason;
  }
  EXPECT_EQ(verdict("c = Neg (x) n = Neg (c) y = Sub (x, n)", doubled).verdict, Verdict::kFailed);
}

TEST(VerifierValues, IndicesAreWithinRange) {
  const auto result = verdict("y = Gather (x, i)", [](GraphBuilder& build, SiteFixture& site) {
    return build.node("Identity", {build.node("Gather", {site.value("x"), site.value("i")})});
  });
  EXPECT_EQ(result.verdict, Verdict::kVerified) << result.reason;
}

/// Exact in double, and not in the type: a sum of large numbers takes the small ones away.
TEST(VerifierValues, WhatRoundingMakesMuchWorse) {
  const auto worse = [](GraphBuilder& build, SiteFixture& site) {
    Value* large = build.scalar(1e6, onnx::TensorProto::FLOAT);
    return build.node("Sub", {build.node("Add", {site.value("x"), large}), large});
  };
  const auto result = verdict("y = Identity (x)", worse);
  EXPECT_EQ(result.verdict, Verdict::kFailed);
  EXPECT_THAT(result.reason, HasSubstr("ulp"));
}

/// Its alpha is a float: where x is nearly -3, what is left of the sum shows its 24 bits. The model's own sum shows those of
/// its constants, or is exact.
TEST(VerifierValues, NumbersThatBecomeAttributes) {
  const std::string gate =
      " three = Constant <value_float = 3.0> () zero = Constant <value_float = 0.0> () six = Constant <value_float = 6.0> () "
      "s = Add (m, three) c = Clip (s, zero, six) y = Div (c, six)";
  const std::string low = "low = Constant <value_float = -2.9999> () high = Constant <value_float = -2.9998> () ";
  const auto slope = [](bool is_clipped, double alpha) {
    return [=](GraphBuilder& build, SiteFixture& site) {
      const auto number = [&build](double value) { return build.scalar(value, onnx::TensorProto::FLOAT); };
      Value* m = is_clipped ? build.node("Clip", {site.value("x"), number(-2.9999F), number(-2.9998F)})
                            : build.node("Add", {build.node("Mul", {site.value("x"), number(0.0001F)}),
                                                 build.node("Mul", {number(1.7291F), number(-1.7292F)})});
      return build.node("HardSigmoid", {m}, {{"alpha", alpha}, {"beta", 0.5}});
    };
  };
  for (const bool is_clipped : {false, true}) {
    const std::string near =
        "a = Constant <value_float = 1.7291> () b = Constant <value_float = -1.7292> () tiny = Constant <value_float = 0.0001> "
        "() t = Mul (x, tiny) near = Mul (a, b) m = Add (t, near)";
    const std::string nodes = (is_clipped ? low + "m = Clip (x, low, high)" : near) + gate;
    const auto right = verdict(nodes, slope(is_clipped, 1.0 / 6));
    EXPECT_EQ(right.verdict, Verdict::kVerified) << right.reason;
    EXPECT_EQ(verdict(nodes, slope(is_clipped, 1.0 / 6 + 1e-6)).verdict, Verdict::kFailed) << "off by more than rounding makes";
  }
}

/// An attribute rounds more than a model of doubles may be given.
TEST(VerifierValues, NumbersOfDoublesThatBecomeAttributes) {
  const auto result = verdict(
      "half = Constant <value = double {0.5}> () six = Constant <value = double {6}> () "
      "zero = Constant <value = double {0}> () one = Constant <value = double {1}> () "
      "m = Div (x, six) s = Add (m, half) y = Clip (s, zero, one)",
      [](GraphBuilder& build, SiteFixture& site) {
        return build.node("HardSigmoid", {site.value("x")}, {{"alpha", 1.0 / 6}, {"beta", 0.5}});
      },
      "double");
  EXPECT_EQ(result.verdict, Verdict::kFailed) << result.type_difference_ulp;
}

/// What the model itself rounds away may be written exactly.
TEST(VerifierValues, WhatIsMoreExactThanTheModel) {
  const std::string nodes = "c = Constant <value_float = 100.0> () s = Add (x, c) y = Sub (s, c)";
  const auto result = verdict(nodes, unary("Identity"));
  EXPECT_EQ(result.verdict, Verdict::kVerified) << result.reason;
}

TEST(VerifierValues, OtherShapesAndTypes) {
  const auto transposed = verdict("y = Identity (x)", unary("Transpose"));
  EXPECT_THAT(transposed.reason, HasSubstr("shape"));
  const auto cast = verdict("y = Identity (x)", [](GraphBuilder& build, SiteFixture& site) {
    return build.node("Cast", {site.value("x")}, {GraphBuilder::attribute("to", int64_t{onnx::TensorProto::FLOAT16})});
  });
  EXPECT_EQ(cast.verdict, Verdict::kFailed) << cast.reason;
}

}  // namespace
}  // namespace attn_opt
