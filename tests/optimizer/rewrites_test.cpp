// The engine of rewrites: what is applied, in which order, and what is refused.
#include "attn_opt/matcher.h"
#include "attn_opt/rules.h"
#include "tests/optimizer/optimizer_case.h"

namespace attn_opt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Make = std::function<Value*(Value& x, GraphBuilder& build)>;

/// OUTER(INNER(x)) becomes what MAKE makes of x; with an empty INNER, OUTER(x).
class Chain : public Rewrite {
 public:
  Chain(std::string name, std::string outer, std::string inner, Make make, int priority = 0)
      : name_(std::move(name)),
        outer_(std::move(outer)),
        inner_(std::move(inner)),
        make_(std::move(make)),
        priority_(priority) {}
  std::string_view name() const override { return name_; }
  std::string_view summary() const override { return "a test"; }
  int priority() const override { return priority_; }
  bool is_anchor(const Node& node) const override { return node.is(outer_); }

  Matched<RewriteMatch> match(const Node& node, RewriteContext& context) const override {
    RewriteMatch match;
    Value* x = nullptr;
    const Matcher wanted = op(outer_, {inner_.empty() ? any(&x) : op(inner_, {any(&x)})});
    ATTN_OPT_DONE(fits(wanted, *node.outputs[0], context.facts, std::string(kNoMatch)));
    match.values = {{"x", x}, {"y", node.outputs[0]}};
    return match;
  }

  Matched<std::vector<Replacement>> apply(const RewriteMatch& match, GraphBuilder& build) const override {
    return std::vector<Replacement>{{match.value("y"), make_(*match.value("x"), build)}};
  }

 private:
  std::string name_, outer_, inner_;
  Make make_;
  int priority_;
};

Make one(const std::string& op_type) {
  return [op_type](Value& x, GraphBuilder& build) { return build.node(op_type, {&x}); };
}

OptimizeOptions with(std::vector<std::shared_ptr<const Rewrite>> rewrites) {
  OptimizeOptions options;
  options.rewrites = std::move(rewrites);
  return options;
}

std::shared_ptr<const Rewrite> chain(const std::string& name, const std::string& outer, const std::string& inner, Make make,
                                     int priority = 0) {
  return std::make_shared<Chain>(name, outer, inner, std::move(make), priority);
}

/// Relu(Neg(x)) = Max(-x, 0): right, and the same of x: wrong.
std::shared_ptr<const Rewrite> right() {
  return chain("right", "Relu", "Neg", [](Value& x, GraphBuilder& build) {
    return build.node("Neg", {build.node("Min", {&x, build.scalar(0, onnx::TensorProto::FLOAT)})});
  });
}
std::shared_ptr<const Rewrite> wrong(int priority = 0) { return chain("wrong", "Relu", "Neg", one("Relu"), priority); }

Model model_with(const std::string& nodes, const std::string& outputs = "float[b, 4] y") {
  return in_memory(model_of_graph("(float[b, 4] x) => (" + outputs + ") {" + nodes + "}"));
}

/// "rewrite: outcome" of each line of REPORT; the miss where there is one.
std::vector<std::string> lines(const Report& report) {
  std::vector<std::string> all;
  for (const RewriteReport& line : report.rewrites)
    all.push_back(line.pattern + ": " + (line.miss_id.empty() ? "applied" : line.miss_id));
  return all;
}

TEST(Rewrites, AppliedVerifiedAndReported) {
  Model model = model_with("n = Neg (x) y = Relu (n)");
  const Report report = optimized(model, with({right()}));
  EXPECT_THAT(lines(report), ElementsAre("right: applied"));
  EXPECT_TRUE(report.changed);
  EXPECT_EQ(report.fused(), 0);
  EXPECT_EQ(report.rewritten(), 1);
  EXPECT_EQ(report.rewrites[0].verification->verdict, Verdict::kVerified);
  EXPECT_THAT(report.rewrites[0].nodes, ElementsAre("y", "n"));
  EXPECT_EQ(report.opset_before, 18);
  EXPECT_EQ(report.opset_after, 24);
  EXPECT_EQ(count_of(model.proto, "Relu"), 0);
  EXPECT_EQ(model.proto.graph().output(0).name(), "y");
  expect_valid(model.proto);
}

TEST(Rewrites, WrongOnesAreRefusedWithTheirDifference) {
  Model model = model_with("n = Neg (x) y = Relu (n)");
  const std::string before = model.proto.SerializeAsString();
  const Report report = optimized(model, with({wrong()}));
  ASSERT_THAT(lines(report), ElementsAre("wrong: verification.failed"));
  EXPECT_THAT(report.rewrites[0].found, HasSubstr("differs by 1"));
  EXPECT_GT(report.rewrites[0].verification->algebra_difference, 0.5);
  EXPECT_FALSE(report.changed);
  EXPECT_EQ(model.proto.SerializeAsString(), before);
}

/// What agrees on small numbers alone.
TEST(Rewrites, RowsOfManySizesAreTried) {
  const auto clip = chain("clip", "Abs", "", [](Value& x, GraphBuilder& build) {
    return build.node("Min", {build.node("Abs", {&x}), build.scalar(20, onnx::TensorProto::FLOAT)});
  });
  Model model = model_with("y = Abs (x)");
  EXPECT_THAT(lines(optimized(model, with({clip}))), ElementsAre("clip: verification.failed"));
}

TEST(Rewrites, TheHigherPriorityGoesFirst) {
  const auto to_abs = [](int priority) { return chain("abs", "Sqrt", "", one("Sqrt"), priority); };
  const auto pair = [](int priority) {
    return chain("pair", "Abs", "Sqrt", [](Value& x, GraphBuilder& build) { return build.node("Sqrt", {&x}); }, priority);
  };
  for (const bool pair_first : {true, false}) {
    Model model = model_with("p = Abs (x) s = Sqrt (p) y = Abs (s)");
    OptimizeOptions options = with({to_abs(pair_first ? 0 : 2), pair(1)});
    options.most_rounds = 1;
    const Report report = optimized(model, options);
    EXPECT_EQ(lines(report).front(), pair_first ? "pair: applied" : "abs: applied");
  }
  OptimizeOptions options = with({to_abs(2), pair(1)});
  options.priorities["pair"] = 3;
  options.most_rounds = 1;
  Model model = model_with("p = Abs (x) s = Sqrt (p) y = Abs (s)");
  EXPECT_EQ(lines(optimized(model, options)).front(), "pair: applied");
}

/// Abs(Abs(Abs(x))): the two matches share a node, and the second is found again in the next round.
TEST(Rewrites, MatchesThatShareNodesTakeTurns) {
  Model model = model_with("a = Abs (x) b = Abs (a) y = Abs (b)");
  const Report report = optimized(model, with({chain("twice", "Abs", "Abs", one("Abs"))}));
  EXPECT_THAT(lines(report), ElementsAre("twice: applied", "twice: applied"));
  EXPECT_EQ(count_of(model.proto, "Abs"), 1);
  EXPECT_FALSE(report.has_rewrites_left);
}

TEST(Rewrites, RoundsAreBounded) {
  Model model = model_with("y = Abs (x)");
  OptimizeOptions options = with({chain("again", "Abs", "", one("Abs"))});
  options.most_rounds = 3;
  const Report report = optimized(model, options);
  EXPECT_EQ(report.rewritten(), 3);
  EXPECT_TRUE(report.has_rewrites_left);
}

TEST(Rewrites, WhatOthersReadStays) {
  Model model = model_with("n = Neg (x) y = Relu (n) z = Exp (n)", "float[b, 4] y, float[b, 4] z");
  const Report report = optimized(model, with({right()}));
  EXPECT_EQ(report.rewritten(), 1);
  EXPECT_EQ(count_of(model.proto, "Exp"), 1);
  EXPECT_EQ(count_of(model.proto, "Neg"), 2);
  EXPECT_THAT(report.rewrites[0].nodes, ElementsAre("y"));
  expect_valid(model.proto);
}

TEST(Rewrites, InBodiesToo) {
  Model model = in_memory(model_of_graph(R"((bool c, float[b, 4] x) => (float[b, 4] y) {
    y = If (c) <then_branch = t () => (float[b, 4] r) { n = Neg (x) r = Relu (n) }, else_branch = e () => (float[b, 4] s) { s = Exp (x) }>
  })"));
  const Report report = optimized(model, with({right()}));
  ASSERT_EQ(report.rewritten(), 1);
  EXPECT_THAT(report.rewrites[0].graph, HasSubstr("then_branch"));
  EXPECT_EQ(count_of(model.proto, "Relu"), 0);
  expect_valid(model.proto);
}

TEST(Rewrites, AnExistingValueInThePlaceOfAnother) {
  Model model = model_with("a = Identity (x) p = Neg (a) n = Neg (p) y = Abs (n)");
  const Report report = optimized(model, with({chain("twice", "Neg", "Neg", [](Value& x, GraphBuilder&) { return &x; })}));
  EXPECT_EQ(report.rewritten(), 1);
  EXPECT_EQ(count_of(model.proto, "Neg"), 0);
  expect_valid(model.proto);
}

/// Abs(Neg(x)) where the negation has readers before and behind the Abs: what replaces it goes before the first of them.
class ReplacesInner : public Chain {
 public:
  explicit ReplacesInner(bool before_outer = false) : Chain("inner", "Abs", "Neg", one("Abs")), before_outer_(before_outer) {}

  Matched<RewriteMatch> match(const Node& node, RewriteContext& context) const override {
    ATTN_OPT_MATCH(RewriteMatch match, Chain::match(node, context));
    match.values["n"] = node.inputs[0];
    if (before_outer_) match.insert_before = node.outputs[0]->producer;
    return match;
  }

  Matched<std::vector<Replacement>> apply(const RewriteMatch& match, GraphBuilder& build) const override {
    Value* zero = build.scalar(0, onnx::TensorProto::FLOAT);
    return std::vector<Replacement>{{match.value("n"), build.node("Sub", {zero, match.value("x")})},
                                    {match.value("y"), build.node("Abs", {match.value("x")})}};
  }

 private:
  bool before_outer_;
};

TEST(Rewrites, NewNodesGoBeforeTheFirstReader) {
  const std::string nodes = "n = Neg (x) e = Exp (n) y = Abs (n) z = Add (e, n)";
  Model model = model_with(nodes, "float[b, 4] y, float[b, 4] z");
  EXPECT_THAT(lines(optimized(model, with({std::make_shared<ReplacesInner>()}))), ElementsAre("inner: applied"));
  EXPECT_EQ(count_of(model.proto, "Neg"), 0);
  expect_valid(model.proto);
  Model given = model_with(nodes, "float[b, 4] y, float[b, 4] z");
  EXPECT_THAT(lines(optimized(given, with({std::make_shared<ReplacesInner>(true)}))), ElementsAre("inner: rewrite.order"))
      << "a place that the match gives is kept";
  Model in_body = in_memory(model_of_graph(R"((bool c, float[b, 4] x) => (float[b, 4] y, float[b, 4] z) {
    n = Neg (x)
    z = If (c) <then_branch = t () => (float[b, 4] r) { r = Exp (n) }, else_branch = e () => (float[b, 4] s) { s = Exp (x) }>
    y = Abs (n)
  })"));
  EXPECT_THAT(lines(optimized(in_body, with({std::make_shared<ReplacesInner>()}))), ElementsAre("inner: applied"));
  expect_valid(in_body.proto);
}

TEST(Rewrites, WhatCannotBeReplaced) {
  const auto of_input = chain("input", "Abs", "", [](Value& x, GraphBuilder& build) -> Value* { return nullptr; });
  Model model = model_with("y = Abs (x)");
  EXPECT_THAT(lines(optimized(model, with({of_input}))), ElementsAre("input: rewrite.place"));
}

/// Nodes that no model can have are refused before they are run, with what is wrong in one line.
TEST(Rewrites, NodesThatNoModelCanHave) {
  const auto found = [](const Make& make) {
    Model model = model_with("y = Abs (x)");
    OptimizeOptions options = with({chain("made", "Abs", "", make)});
    options.verify = VerifyMode::kOff;
    options.allow_unverified = true;
    const Report report = optimized(model, options);
    EXPECT_THAT(lines(report), ElementsAre("made: rewrite.node"));
    EXPECT_EQ(count_of(model.proto, "Abs"), 1);
    return report.rewrites[0].found;
  };
  EXPECT_EQ(found(one("Sofmax")), "there is no operator 'Sofmax' in opset 24; did you mean 'Softmax'?");
  EXPECT_EQ(found([](Value& x, GraphBuilder& build) { return build.node("Softmax", {&x, &x}); }),
            "Softmax is given 2 inputs; it takes one: input");
  EXPECT_EQ(found([](Value& x, GraphBuilder& build) { return build.node("Softmax", {&x}, {{"axes", 1}}); }),
            "Softmax has no attribute 'axes'; did you mean 'axis'?");
  EXPECT_EQ(found([](Value& x, GraphBuilder& build) { return build.node("Softmax", {&x}, {{"axis", 1.5}}); }),
            "the attribute 'axis' of Softmax is given as FLOAT; it is INT");
  EXPECT_EQ(found([](Value& x, GraphBuilder& build) { return build.node("Cast", {&x}); }),
            "Cast needs the attribute 'to'; it is INT");
  EXPECT_EQ(found(one("Not")), "Not takes no float32");
  EXPECT_EQ(found([](Value& x, GraphBuilder& build) { return build.node("Add", {&x, build.ints({1})}); }),
            "Add is given float32 and int64, which must be one type");
}

TEST(Rewrites, OperatorsOfOtherDomainsAreTakenAsTheyAre) {
  Model model = model_with("y = Abs (x)");
  OptimizeOptions options = with({chain("made", "Abs", "", one("acme::Fast"))});
  options.verify = VerifyMode::kOff;
  EXPECT_THAT(lines(optimized(model, options)), ElementsAre("made: applied"));
}

TEST(Rewrites, CallsOfTheModelsFunctions) {
  const auto report_of = [](size_t inputs) {
    Model model = in_memory(model_of_text(R"(<ir_version: 8, opset_import: ["": 18, "acme": 1]>
      g (float[b, 4] x) => (float[b, 4] y) { y = Abs (x) }
      <domain: "acme", opset_import: ["": 18]> F (a) => (r) { r = Abs (a) })"));
    OptimizeOptions options = with({chain("made", "Abs", "", [inputs](Value& x, GraphBuilder& build) {
      return build.node("acme::F", std::vector<Value*>(inputs, &x));
    })});
    return optimized(model, options);
  };
  EXPECT_THAT(lines(report_of(1)), ElementsAre("made: applied"));
  const Report wrong = report_of(2);
  ASSERT_THAT(lines(wrong), ElementsAre("made: rewrite.node"));
  EXPECT_EQ(wrong.rewrites[0].found, "acme::F is given 2 inputs; it takes one: a");
}

TEST(Rewrites, UnverifiedOnesNeedLeave) {
  const std::string nodes = "n = Neg (x) r = Relu (n) y = Abs (r)";
  for (const bool allowed : {false, true}) {
    Model model = in_memory(model_of_graph("(float x) => (float y) {" + nodes + "}"));
    OptimizeOptions options = with({right()});
    options.allow_unverified = allowed;
    options.verification.memory_limit = 1;
    EXPECT_THAT(lines(optimized(model, options)), ElementsAre(allowed ? "right: applied" : "right: verification.unverified"));
  }
}

TEST(Rewrites, OnlyDisableAndStopAfter) {
  const std::string nodes = "n = Neg (x) a = Relu (n) m = Neg (a) y = Relu (m)";
  const auto applied = [&](auto set) {
    Model model = model_with(nodes);
    OptimizeOptions options = with({right()});
    set(options);
    return optimized(model, options).rewritten();
  };
  EXPECT_EQ(applied([](auto&) {}), 2);
  EXPECT_EQ(applied([](auto& o) { o.disable = {"right"}; }), 0);
  EXPECT_EQ(applied([](auto& o) { o.only = {"softmax_attention"}; }), 0);
  EXPECT_EQ(applied([](auto& o) { o.only = {"right"}; }), 2);
  EXPECT_EQ(applied([](auto& o) { o.stop_after = 1; }), 1);
  EXPECT_EQ(applied([](auto& o) { o.stop_after = 0; }), 0);
}

/// Around attention: in the same run, before it or behind it, and counted apart.
TEST(Rewrites, BesideAttention) {
  for (const int priority : {0, kAttentionPriority + 1}) {
    Model model = attention_in_text(attention_nodes("a") + "n = Neg (ay) y = Relu (n)");
    const Report report =
        optimized(model, with({chain(
                             "right", "Relu", "Neg",
                             [](Value& x, GraphBuilder& build) {
                               return build.node("Neg", {build.node("Min", {&x, build.scalar(0, onnx::TensorProto::FLOAT)})});
                             },
                             priority)}));
    EXPECT_EQ(report.fused(), 1);
    EXPECT_EQ(report.rewritten(), 1);
    EXPECT_EQ(count_of(model.proto, "Attention"), 1);
    expect_valid(model.proto);
  }
}

TEST(Rewrites, Traced) {
  Model model = model_with("n = Exp (x) y = Relu (n)");
  OptimizeOptions options = with({right()});
  std::vector<std::string> traced;
  options.trace = [&](std::string_view pattern, const Node& node, const Miss& miss) {
    traced.push_back(std::string(pattern) + " " + node.label() + ": " + miss.found);
  };
  optimized(model, options);
  EXPECT_THAT(traced, ElementsAre("right y: 'n' is Exp, not Neg"));

  auto rule = parse_rewrite(R"(# RULE rule
<domain: "rule", opset_import: ["" : 18]>
pattern (x) => (y) { n = Neg (x) y = Relu (n) }
<domain: "rule", opset_import: ["" : 24]>
replacement (x) => (y) { m = Relu (x) y = Sub (m, x) })",
                            "r.rule");
  ASSERT_TRUE(rule.has_value()) << rule.error().message();
  options.rewrites = {std::shared_ptr<const Rewrite>(*std::move(rule))};
  traced.clear();
  optimized(model, options);
  EXPECT_THAT(traced, ElementsAre("rule y: 'n' is Exp, not Neg"));
}

TEST(Rewrites, BuiltInOnesAreOffUnlessAsked) {
  for (const auto& rewrite : rewrites()) {
    OptimizeOptions options;
    options.also = {std::string(rewrite->name())};
    Model model = model_with("y = Abs (x)");
    EXPECT_TRUE(optimize(model, options).has_value()) << rewrite->name();
  }
  OptimizeOptions misspelt;
  misspelt.also = {"no-such"};
  Model model = model_with("y = Abs (x)");
  EXPECT_FALSE(optimize(model, misspelt).has_value());
}

TEST(Rewrites, WhatOneWroteIsNoMissOfItsOwn) {
  class Suspicious : public Chain {
   public:
    Suspicious()
        : Chain("suspicious", "Relu", "Neg",
                [](Value& x, GraphBuilder& build) { return build.node("Sub", {build.node("Relu", {&x}), &x}); }) {}
    Matched<RewriteMatch> match(const Node& node, RewriteContext& context) const override {
      auto found = Chain::match(node, context);
      if (!found) return missed("suspicious.operand", &node, "no Neg");
      return found;
    }
  };
  Model model =
      in_memory(model_of_graph("(float[b, 4] x, float[b, 4] z) => (float[b, 4] y, float[b, 4] r) "
                               "{ n = Neg (x) y = Relu (n) r = Relu (z) }"));
  const Report report = optimized(model, with({std::make_shared<Suspicious>()}));
  ASSERT_EQ(report.rewritten(), 1);
  ASSERT_EQ(report.rewrites.size(), 2u) << "the Relu that was written is no miss";
  EXPECT_EQ(std::ranges::count(report.rewrites, "suspicious.operand", &RewriteReport::miss_id), 1);
}

}  // namespace
}  // namespace attn_opt
