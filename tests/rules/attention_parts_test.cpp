// Attention told by its parts, as patterns outside the core do it.
#include "attn_opt/attention_parts.h"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>

#include "tests/optimizer/optimizer_case.h"

namespace attn_opt {
namespace {

using ::testing::HasSubstr;
using Fill = std::function<void(Node& anchor, MatchContext& context, AttentionParts& parts)>;

/// Softmax -> MatMul -> y, told as FILL says.
class Told : public Pattern {
 public:
  explicit Told(Fill fill) : fill_(std::move(fill)) {}
  std::string_view name() const override { return "told"; }
  std::string_view summary() const override { return ""; }
  bool is_anchor(const Node& node) const override { return node.is("Softmax"); }
  Matched<Match> match(Node& anchor, MatchContext& context) const override {
    AttentionParts parts;
    const Graph& graph = *anchor.graph;
    parts.q.value = graph.find("q");
    parts.k.value = graph.find("k");
    parts.v.value = graph.find("v");
    parts.output.value = graph.find("y");
    parts.scale = 1;
    fill_(anchor, context, parts);
    return match_of(parts, anchor, context);
  }

 private:
  Fill fill_;
};

/// The line of the one site of MODEL, matched by FILL's parts alone.
SiteReport site_of(Model& model, Fill fill) {
  OptimizeOptions options;
  options.rules = {std::make_shared<Told>(std::move(fill))};
  options.only = {"told"};
  const Report report = optimized(model, options);
  EXPECT_EQ(report.sites.size(), 1u);
  return report.sites.empty() ? SiteReport{} : report.sites[0];
}

Model attention(const std::string& inputs, const std::string& nodes, const std::string& output = "float[2,2,5,8] y") {
  return in_memory(model_of_graph("(" + inputs + ") => (" + output + ") { " + nodes + " }"));
}
const std::string kInputs = "float[2,2,5,8] q, float[2,2,7,8] k, float[2,2,7,8] v";
const std::string kNodes =
    "kt = Transpose <perm = [0, 1, 3, 2]> (k) s = MatMul (q, kt) w = Softmax <axis = -1> (s) y = MatMul (w, v)";

/// The miss of kInputs and kNodes told by FILL.
std::string miss_of(Fill fill) {
  Model model = attention(kInputs + ", bool[7] m, int32[7] n", kNodes);
  const SiteReport site = site_of(model, std::move(fill));
  return site.miss_id + ": " + site.found;
}

TEST(AttentionParts, AreFusedAndVerified) {
  Model model = attention(kInputs, kNodes);
  const SiteReport site = site_of(model, [](Node&, MatchContext&, AttentionParts& parts) { parts.peeled = {"MatMul"}; });
  EXPECT_EQ(site.outcome, SiteReport::Outcome::kFused) << explain(site);
  EXPECT_EQ(site.verification->verdict, Verdict::kVerified) << site.verification->reason;
  EXPECT_EQ(site.peeled, std::vector<std::string>{"MatMul"});
  EXPECT_EQ(count_of(model.proto, "Attention"), 1);
  EXPECT_EQ(count_of(model.proto, "Softmax"), 0);
}

TEST(AttentionParts, AWrongDescriptionIsRefused) {
  std::vector<Fill> wrong = {
      [](Node&, MatchContext&, AttentionParts& parts) { parts.scale = 0.5; },
      [](Node&, MatchContext&, AttentionParts& parts) { parts.softcap = 3; },
      [](Node&, MatchContext&, AttentionParts& parts) { std::swap(parts.k.value, parts.v.value); },
      [](Node& anchor, MatchContext&, AttentionParts& parts) {
        parts.terms = {keep(anchor.graph->find("m"), -std::numeric_limits<double>::infinity())};
      },
  };
  // No row keeps a key: what is assumed of rows, or of exp(), would excuse every difference.
  for (const double fill : {-std::numeric_limits<double>::infinity(), 1.0})
    wrong.push_back([fill](Node& anchor, MatchContext&, AttentionParts& parts) {
      Value* mask = anchor.graph->find("m");
      parts.terms = {keep(mask, fill), drop(mask, -std::numeric_limits<double>::infinity())};
      parts.subtracts_maximum = false;
    });
  for (const Fill& fill : wrong) {
    Model model = attention(kInputs + ", bool[7] m", kNodes);
    const SiteReport site = site_of(model, fill);
    EXPECT_EQ(site.outcome, SiteReport::Outcome::kRefused);
    ASSERT_TRUE(site.verification);
    EXPECT_EQ(site.verification->verdict, Verdict::kFailed);
  }
}

TEST(AttentionParts, TermsAndSharedAxes) {
  Model model = attention("float[2,5,16] q, float[2,7,16] k, float[2,7,16] v, float[2,1,5,7] b, bool[5,7] m", R"(
    sizes = Constant <value_ints = [0, 0, 2, 8]> ()
    q4 = Reshape (q, sizes) k4 = Reshape (k, sizes) v4 = Reshape (v, sizes)
    qh = Transpose <perm = [0, 2, 1, 3]> (q4) kh = Transpose <perm = [0, 2, 3, 1]> (k4) vh = Transpose <perm = [0, 2, 1, 3]> (v4)
    p = MatMul (qh, kh) c = Constant <value_float = 0.25> () s = Mul (p, c) a = Add (s, b)
    f = Constant <value_float = -inf> () a2 = Where (m, a, f) w = Softmax <axis = -1> (a2) o = MatMul (w, vh)
    t = Transpose <perm = [0, 2, 1, 3]> (o) flat = Constant <value_ints = [0, 0, 16]> () y = Reshape (t, flat))",
                          "float[2,5,16] y");
  const SiteReport site = site_of(model, [](Node& anchor, MatchContext&, AttentionParts& parts) {
    const Graph& graph = *anchor.graph;
    for (PartView* part : {&parts.q, &parts.k, &parts.v, &parts.output}) part->axes = "bs(hd)";
    parts.heads = 2;
    parts.scale = 0.25;
    parts.terms = {bias(graph.find("b")), keep(graph.find("m"), -std::numeric_limits<double>::infinity())};
  });
  EXPECT_EQ(site.outcome, SiteReport::Outcome::kFused) << explain(site);
  EXPECT_EQ(site.verification->verdict, Verdict::kVerified) << site.verification->reason;
  EXPECT_EQ(count_of(model.proto, "MatMul"), 0);
}

TEST(AttentionParts, WhatDoesNotFitIsAMiss) {
  EXPECT_THAT(miss_of([](Node&, MatchContext&, AttentionParts& parts) { parts.q.axes = "(bh)sd"; }),
              HasSubstr("parts.rank: 'q' is (2, 2, 5, 8)"));
  EXPECT_THAT(miss_of([](Node&, MatchContext&, AttentionParts& parts) { parts.q.axes = "bhsx"; }), HasSubstr("parts.axes"));
  EXPECT_THAT(miss_of([](Node&, MatchContext&, AttentionParts& parts) { parts.v.value = nullptr; }), HasSubstr("parts.order"));
  EXPECT_THAT(miss_of([](Node& anchor, MatchContext&, AttentionParts& parts) { parts.output.value = anchor.graph->find("q"); }),
              HasSubstr("parts.order: no node beside it makes 'q'"));
  EXPECT_THAT(miss_of([](Node& anchor, MatchContext&, AttentionParts& parts) { parts.present_key = anchor.graph->find("k"); }),
              HasSubstr("parts.order: no node beside it makes 'k'"));
  EXPECT_THAT(miss_of([](Node&, MatchContext&, AttentionParts& parts) { parts.scale = NAN; }), HasSubstr("parts.scale"));
  EXPECT_THAT(miss_of([](Node&, MatchContext&, AttentionParts& parts) { parts.softcap = -1; }), HasSubstr("parts.scale"));
  EXPECT_THAT(
      miss_of([](Node& anchor, MatchContext&, AttentionParts& parts) { parts.terms = {keep(anchor.graph->find("m"), NAN)}; }),
      HasSubstr("parts.scale"));
  EXPECT_THAT(miss_of([](Node& anchor, MatchContext&, AttentionParts& parts) { parts.past_key = anchor.graph->find("k"); }),
              HasSubstr("parts.order: a past has both"));
  EXPECT_THAT(miss_of([](Node& anchor, MatchContext&, AttentionParts& parts) { parts.q.value = anchor.graph->find("y"); }),
              HasSubstr("parts.order: 'y' does not stand above it"));
  EXPECT_THAT(
      miss_of([](Node& anchor, MatchContext&, AttentionParts& parts) { parts.terms = {bias(anchor.graph->find("m"))}; }),
      HasSubstr("parts.type: 'm' is of type bool"));
  EXPECT_THAT(
      miss_of([](Node& anchor, MatchContext&, AttentionParts& parts) { parts.terms = {drop(anchor.graph->find("n"), 0)}; }),
      HasSubstr("parts.type: 'n' is of type int32"));
  EXPECT_THAT(miss_of([](Node&, MatchContext&, AttentionParts& parts) { parts.softmax_precision = onnx::TensorProto::INT64; }),
              HasSubstr("parts.type: a softmax in int64"));
}

TEST(AttentionParts, AxesAreSpelled) {
  for (const char* axes : {"bhsd", "bs(hd)", "(bh)sd", "sd", "bhds", "s(bh)d", "hbsd"}) EXPECT_EQ(wrong_axes(axes), "") << axes;
  for (const char* axes : {"", "b", "bh", "bhs", "bbsd", "(bhs)d", "(b)hsd", "((bh))sd", "b(hsd", "bh)sd", "(bs)hd", "bhsdx"})
    EXPECT_NE(wrong_axes(axes), "") << axes;
}

}  // namespace
}  // namespace attn_opt
