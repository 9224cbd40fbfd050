// The combinators.
#include "attn_opt/matcher.h"

#include "tests/match/facts_case.h"

namespace attn_opt {
namespace {

class MatcherCase : public FactsCase {
 public:
  /// NODES compute from x and z, both float[2, 4]; two, minus and varied are initializers.
  explicit MatcherCase(const std::string& nodes, int opset = 18)
      : FactsCase(
            "(float[2,4] x, float[2,4] z) => (float[2,4] y) "
            "<float two = {2}, float[4] twos = {2, 2, 2, 2}, float[4] varied = {1, 2, 2, 2}> {" +
                nodes + "}",
            opset) {}
  Value& at(const std::string& name) { return *view->main().find(name); }
  bool fits(const Matcher& matcher, const std::string& name = "y") { return matcher(at(name), *facts); }
};

TEST(Matcher, Any) {
  MatcherCase c("y = Abs (x)");
  Value* seen = nullptr;
  EXPECT_TRUE(c.fits(any()));
  EXPECT_TRUE(c.fits(any(&seen)));
  EXPECT_EQ(seen, &c.at("y"));
}

TEST(Matcher, Same) {
  MatcherCase c("copy = Identity (x) same_type = Cast <to = 1> (copy) y = Abs (x)");
  Value* bound = &c.at("x");
  EXPECT_TRUE(c.fits(same(&bound), "x"));
  EXPECT_TRUE(c.fits(same(&bound), "same_type"));
  EXPECT_FALSE(c.fits(same(&bound), "z"));
  EXPECT_FALSE(c.fits(same(&bound), "y"));
  bound = &c.at("copy");
  EXPECT_TRUE(c.fits(same(&bound), "x")) << "either may be the copy";
}

/// What is compared is what the pointer holds when the value is looked at, not when the matcher was made.
TEST(Matcher, SameOfWhatWasCapturedOnTheWay) {
  Value* captured = nullptr;
  const Matcher square = op("Mul", {any(&captured), same(&captured)});
  EXPECT_TRUE(MatcherCase("y = Mul (x, x)").fits(square));
  EXPECT_TRUE(MatcherCase("c = Identity (x) y = Mul (x, c)").fits(square));
  EXPECT_FALSE(MatcherCase("y = Mul (x, z)").fits(square));
}

/// same() may come before its any(), as in the other order of commuted().
TEST(Matcher, SameBeforeItsCapture) {
  for (const std::string operands : {"(x, t)", "(t, x)"}) {
    MatcherCase c("t = Tanh (x) y = Mul " + operands);
    Value* captured = nullptr;
    EXPECT_TRUE(c.fits(commuted("Mul", any(&captured), op("Tanh", {same(&captured)})))) << operands;
    EXPECT_EQ(captured, &c.at("x"));
  }
  for (const std::string operands : {"(z, t)", "(t, z)"}) {
    Value* captured = nullptr;
    EXPECT_FALSE(
        MatcherCase("t = Tanh (x) y = Mul " + operands).fits(commuted("Mul", any(&captured), op("Tanh", {same(&captured)}))));
    EXPECT_EQ(captured, nullptr) << "what does not hold is taken back";
  }
  MatcherCase alone("t = Tanh (x) y = Mul (t, x)");
  Value* twice = nullptr;
  EXPECT_TRUE(alone.fits(op("Mul", {op("Tanh", {same(&twice)}), same(&twice)})));
  EXPECT_EQ(twice, &alone.at("x"));
}

TEST(Matcher, IntegersKnownBeforehand) {
  MatcherCase c("k = Constant <value_ints = [2, 3]> () d = Identity (k) s = Shape (x) y = Abs (x)");
  EXPECT_TRUE(c.fits(integers_are({2, 3}), "k"));
  EXPECT_TRUE(c.fits(integers_are({2, 3}), "d"));
  EXPECT_TRUE(c.fits(integers_are({2, 4}), "s"));
  EXPECT_FALSE(c.fits(integers_are({3, 2}), "k"));
  EXPECT_FALSE(c.fits(integers_are({2}), "k"));
  EXPECT_FALSE(c.fits(integers_are({}), "x"));
}

TEST(Matcher, AttributesOfEveryKind) {
  MatcherCase c("t = Transpose <perm = [1, 0]> (x) l = LeakyRelu <alpha = 0.1> (x) d = LeakyRelu (x) y = Transpose (x)");
  EXPECT_TRUE(c.fits(where(any(), attribute_is_ints("perm", {1, 0})), "t"));
  EXPECT_FALSE(c.fits(where(any(), attribute_is_ints("perm", {0, 1})), "t"));
  EXPECT_FALSE(c.fits(where(any(), attribute_is_ints("perm", {1, 0})))) << "absent";
  EXPECT_TRUE(c.fits(where(any(), attribute_is_ints("perm", {}))));
  EXPECT_TRUE(c.fits(where(any(), attribute_near("alpha", 0.1, 0.01)), "l"));
  EXPECT_FALSE(c.fits(where(any(), attribute_near("alpha", 0.1, 0.01)), "d"));
  EXPECT_TRUE(c.fits(where(any(), attribute_near("alpha", 0.01, 0.01)), "d"));
}

TEST(Matcher, Number) {
  MatcherCase c("k = Constant <value_float = 0.5> () copy = Identity (twos) y = Abs (x)");
  double number_seen = 0;
  EXPECT_TRUE(c.fits(number(&number_seen), "two"));
  EXPECT_EQ(number_seen, 2);
  EXPECT_TRUE(c.fits(number(), "copy"));
  EXPECT_TRUE(c.fits(number(&number_seen), "k"));
  EXPECT_EQ(number_seen, 0.5);
  EXPECT_FALSE(c.fits(number(&number_seen), "varied"));
  EXPECT_FALSE(c.fits(number(&number_seen), "x"));
  EXPECT_EQ(number_seen, 0.5) << "left alone where nothing fits";
  EXPECT_TRUE(c.fits(number_is(2), "twos"));
  EXPECT_FALSE(c.fits(number_is(2), "varied"));
  EXPECT_FALSE(c.fits(number_is(2.5), "two"));
  EXPECT_FALSE(c.fits(number_is(0), "x"));
}

TEST(Matcher, Op) {
  MatcherCase c("y = Sub (x, two)");
  Value* left = nullptr;
  Node* node = nullptr;
  EXPECT_TRUE(c.fits(op("Sub", {any(&left), number_is(2)}, &node)));
  EXPECT_EQ(left, &c.at("x"));
  EXPECT_EQ(node, c.at("y").producer);
  EXPECT_TRUE(c.fits(op("Sub", {any()}))) << "more inputs may follow";
  EXPECT_TRUE(c.fits(op("Sub", {})));
  EXPECT_FALSE(c.fits(op("Sub", {number_is(2), any()}))) << "swapped";
  EXPECT_FALSE(c.fits(op("Add", {any(), any()})));
  EXPECT_FALSE(c.fits(op("Sub", {any(), any(), any()}))) << "too few inputs";
  EXPECT_FALSE(c.fits(op("Sub", {}), "x")) << "a graph input";
}

TEST(Matcher, OpOfAnotherDomain) {
  EXPECT_FALSE(MatcherCase("y = other.Sub (x, two)").fits(op("Sub", {any(), any()})));
  EXPECT_TRUE(MatcherCase("y = other.Sub (x, two)").fits(op("other::Sub", {any(), any()})));
  MatcherCase c("y = Sub (x, two)");
  c.at("y").producer->proto->set_domain("ai.onnx");
  EXPECT_TRUE(c.fits(op("Sub", {any(), any()})));
}

TEST(Matcher, OpOfAnOmittedInput) {
  MatcherCase c("y = Clip (x, , two)");
  EXPECT_FALSE(c.fits(op("Clip", {any(), any(), any()})));
  EXPECT_TRUE(c.fits(op("Clip", {any()})));
}

TEST(Matcher, OpOfItsFirstOutputAlone) {
  MatcherCase c("a, b = Split <axis = 1, num_outputs = 2> (x) y = Abs (z)");
  EXPECT_TRUE(c.fits(op("Split", {any()}), "a"));
  EXPECT_FALSE(c.fits(op("Split", {any()}), "b"));
}

TEST(Matcher, SeesThroughWhatChangesNothing) {
  MatcherCase c("a = Tanh (x) b = Identity (a) d = Cast <to = 1> (b) e = Mul (d, two) y = Identity (e)");
  double factor = 0;
  EXPECT_TRUE(c.fits(op("Mul", {op("Tanh", {any()}), number(&factor)})));
  EXPECT_FALSE(c.fits(op("Identity", {any()}))) << "it is not there";
  MatcherCase half("a = Tanh (x) b = Cast <to = 10> (a) d = Cast <to = 1> (b) y = Mul (d, two)");
  EXPECT_FALSE(half.fits(op("Mul", {op("Tanh", {any()}), number()}))) << "a cast that rounds";
}

TEST(Matcher, Commuted) {
  for (const std::string operands : {"(t, two)", "(two, t)"}) {
    MatcherCase c("t = Tanh (x) y = Mul " + operands);
    Value* inner = nullptr;
    Node* node = nullptr;
    double cap = 0;
    EXPECT_TRUE(c.fits(commuted("Mul", op("Tanh", {any(&inner)}), number(&cap), &node))) << operands;
    EXPECT_EQ(inner, &c.at("x"));
    EXPECT_EQ(cap, 2);
    EXPECT_EQ(node, c.at("y").producer);
  }
  EXPECT_FALSE(MatcherCase("t = Tanh (x) y = Mul (t, z)").fits(commuted("Mul", op("Tanh", {any()}), number())));
  EXPECT_FALSE(MatcherCase("t = Tanh (x) y = Mul (t, t)").fits(commuted("Mul", op("Tanh", {any()}), number())));
  EXPECT_FALSE(MatcherCase("t = Tanh (x) y = Div (t, two)").fits(commuted("Mul", op("Tanh", {any()}), number())));
}

TEST(Matcher, Either) {
  const auto alternatives = [](Value** seen) {
    return either({op("Add", {any(seen), number_is(2)}), op("Add", {number_is(2), any(seen)}), op("Abs", {any(seen)})});
  };
  Value* seen = nullptr;
  MatcherCase swapped("y = Add (two, x)");
  EXPECT_TRUE(swapped.fits(alternatives(&seen)));
  EXPECT_EQ(seen, &swapped.at("x")) << "of the alternative that fits, not of those tried before";
  MatcherCase last("y = Abs (z)");
  EXPECT_TRUE(last.fits(alternatives(&seen)));
  EXPECT_EQ(seen, &last.at("z"));
  EXPECT_FALSE(MatcherCase("y = Add (z, x)").fits(alternatives(&seen)));
  EXPECT_FALSE(MatcherCase("y = Abs (x)").fits(either({})));
}

TEST(Matcher, ReducedOverLastByAttribute) {
  const auto fits = [](const std::string& attributes) {
    Value* input = nullptr;
    MatcherCase c("y = ReduceMax <" + attributes + "> (x)", 13);
    return c.fits(reduced_over_last("ReduceMax", any(&input))) && input == &c.at("x");
  };
  EXPECT_TRUE(fits("axes = [-1], keepdims = 1"));
  EXPECT_TRUE(fits("axes = [1]"));
  EXPECT_FALSE(fits("axes = [0]"));
  EXPECT_FALSE(fits("axes = [-2]"));
  EXPECT_FALSE(fits("axes = [0, 1]"));
  EXPECT_FALSE(fits("axes = [-1], keepdims = 0"));
  EXPECT_FALSE(fits("keepdims = 1")) << "all axes";
}

TEST(Matcher, ReducedOverLastByInput) {
  const auto fits = [](const std::string& axes, const std::string& op_type = "ReduceSum") {
    MatcherCase c("a = Constant <value_ints = [" + axes + "]> () y = ReduceSum <keepdims = 1> (x, a)");
    return c.fits(reduced_over_last(op_type, any()));
  };
  EXPECT_TRUE(fits("-1"));
  EXPECT_TRUE(fits("1"));
  EXPECT_FALSE(fits("0"));
  EXPECT_FALSE(fits("0, 1"));
  EXPECT_FALSE(fits("-1", "ReduceMax"));
  EXPECT_FALSE(MatcherCase("y = ReduceSum (x)").fits(reduced_over_last("ReduceSum", any())));
  EXPECT_FALSE(MatcherCase("n = NonZero (x) i = Constant <value_ints = [0]> () f = Constant <value_ints = [-1]> () r = Reshape "
                           "(n, f) a = Gather (r, i) y = ReduceSum (x, a)")
                   .fits(reduced_over_last("ReduceSum", any())))
      << "axes that are not known";
  EXPECT_FALSE(MatcherCase("a = other.Op (x) k = Constant <value_ints = [-1]> () y = ReduceSum (a, k)")
                   .fits(reduced_over_last("ReduceSum", op("Abs", {any()}))));
}

TEST(Matcher, ReducedOverSeveralAxes) {
  const auto fits = [](const std::string& axes, const std::vector<int64_t>& wanted) {
    MatcherCase c("a = Constant <value_ints = [" + axes + "]> () y = ReduceSum <keepdims = 1> (x, a)");
    return c.fits(reduced_over("ReduceSum", wanted, any()));
  };
  EXPECT_TRUE(fits("0, 1", {0, 1}));
  EXPECT_TRUE(fits("-1, 0", {0, 1})) << "in any order";
  EXPECT_TRUE(fits("0, 1", {-1, -2}));
  EXPECT_FALSE(fits("1", {0, 1}));
  EXPECT_FALSE(fits("0, 1", {1}));
  EXPECT_FALSE(fits("0, 1", {0, 5})) << "no axis";
  EXPECT_TRUE(MatcherCase("y = ReduceMax <axes = [0, 1]> (x)", 13).fits(reduced_over("ReduceMax", {0, 1}, any())));
}

/// A reduction keeps no pointer to its locals, which taking back would write to.
TEST(Matcher, AReductionInWhatFailsLater) {
  MatcherCase c("k = Constant <value_ints = [1]> () s = ReduceSum (x, k) y = Add (s, z)");
  Value* x = nullptr;
  EXPECT_FALSE(c.fits(op("Add", {reduced_over_last("ReduceSum", any(&x)), number()})));
  EXPECT_EQ(x, nullptr);
}

TEST(Matcher, ReducedOverLastOfUnknownRank) {
  MatcherCase c("a = other.Op (x) k = Constant <value_ints = [1]> () y = ReduceSum (a, k)");
  EXPECT_FALSE(c.fits(reduced_over_last("ReduceSum", any())));
}

TEST(Matcher, CapturesOfAnAlternativeThatFailsAreTakenBack) {
  MatcherCase c("n = Neg (x) y = Abs (n)");
  Value *x = nullptr, *other = nullptr;
  const Matcher wanted = either({op("Abs", {op("Neg", {any(&other)}), any()}),
                                 op("Abs", {where(op("Neg", {any(&other)}), attribute_is("no", 1))}), op("Abs", {any(&x)})});
  EXPECT_TRUE(c.fits(wanted));
  EXPECT_EQ(x, &c.at("n"));
  EXPECT_EQ(other, nullptr);
}

TEST(Matcher, NumbersNear) {
  MatcherCase c("y = Abs (x)");
  EXPECT_TRUE(c.fits(number_near(2.001), "two"));
  EXPECT_FALSE(c.fits(number_near(2.01), "two"));
  EXPECT_FALSE(c.fits(number_near(2), "varied"));
}

TEST(Matcher, OperandsThatMayBeAbsent) {
  double most = 0;
  const Matcher clip = op("Clip", {any(), optional(number()), optional(number(&most))});
  EXPECT_TRUE(MatcherCase("y = Clip (x)").fits(clip));
  EXPECT_TRUE(MatcherCase("y = Clip (x, , two)").fits(clip));
  EXPECT_EQ(most, 2);
  EXPECT_FALSE(MatcherCase("m = Neg (two) y = Clip (x, , z)").fits(clip));
  EXPECT_FALSE(MatcherCase("y = Clip (x)").fits(op("Clip", {any(), number()})));
}

TEST(Matcher, Repeated) {
  Value* x = nullptr;
  const Matcher negated = repeated("Neg", op("Abs", {any(&x)}), 2);
  EXPECT_TRUE(MatcherCase("y = Abs (x)").fits(negated));
  EXPECT_TRUE(MatcherCase("a = Abs (x) b = Neg (a) y = Neg (b)").fits(negated));
  EXPECT_FALSE(MatcherCase("a = Abs (x) b = Neg (a) c = Neg (b) y = Neg (c)").fits(negated));
}

TEST(Matcher, Products) {
  double number_seen = 0;
  Value *x = nullptr, *tanh = nullptr;
  const Matcher product = product_of({any(&x), op("Tanh", {any(&tanh)})}, &number_seen);
  MatcherCase of_three("t = Tanh (z) a = Mul (t, two) b = Mul (twos, a) y = Mul (x, b)");
  EXPECT_TRUE(of_three.fits(product));
  EXPECT_EQ(number_seen, 4);
  EXPECT_EQ(x->name, "x");
  EXPECT_TRUE(MatcherCase("t = Tanh (z) a = Div (x, two) y = Mul (a, t)").fits(product));
  EXPECT_EQ(number_seen, 0.5);
  EXPECT_FALSE(MatcherCase("t = Tanh (z) a = Div (two, x) y = Div (a, t)").fits(product)) << "a divisor that is no number";
  EXPECT_TRUE(MatcherCase("t = Tanh (z) p = Mul (x, z) y = Mul (p, t)").fits(product)) << "a factor may be a product";
  EXPECT_FALSE(MatcherCase("p = Mul (x, z) y = Mul (p, two)").fits(product));
  EXPECT_TRUE(MatcherCase("a = Mul (x, two) y = Mul (x, a)").fits(product_near(2, {any(&x), same(&x)})));
  EXPECT_FALSE(MatcherCase("a = Mul (x, two) y = Mul (z, a)").fits(product_near(2, {any(&x), same(&x)})));
  MatcherCase scaled("a = Div (x, two) t = Tanh (a) y = Mul (a, t)");
  EXPECT_TRUE(scaled.fits(product_near(1, {any(&x), op("Tanh", {same(&x)})}))) << "a factor that is a quotient itself";
  EXPECT_EQ(x->name, "a");
}

TEST(Matcher, TheMissSaysWhatWasFoundWhereItGotFurthest) {
  MatcherCase c("e = Exp (x) n = Neg (e) y = Abs (n)");
  const auto miss = attn_opt::fits(op("Abs", {either({op("Neg", {op("Tanh", {any()})}), op("Exp", {any()})})}), c.at("y"),
                                   *c.facts, "some.id");
  ASSERT_FALSE(miss.has_value());
  EXPECT_EQ(miss.error().id, "some.id");
  EXPECT_EQ(miss.error().found, "'e' is Exp, not Tanh");
  EXPECT_TRUE(attn_opt::fits(op("Abs", {any()}), c.at("y"), *c.facts, "some.id"));
}

}  // namespace
}  // namespace attn_opt
