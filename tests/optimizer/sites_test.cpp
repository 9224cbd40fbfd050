// What several patterns say of one node, and what becomes of what cannot be run.
#include "attn_opt/rules.h"
#include "tests/optimizer/optimizer_case.h"

namespace attn_opt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Misses at every Softmax, having peeled PEELED.
class Misses : public Pattern {
 public:
  Misses(std::string name, std::vector<std::string> peeled) : name_(std::move(name)), peeled_(std::move(peeled)) {}
  std::string_view name() const override { return name_; }
  std::string_view summary() const override { return "finds nothing"; }
  bool is_anchor(const Node& node) const override { return node.is("Softmax"); }
  Matched<Match> match(Node& anchor, MatchContext&) const override {
    return missed(name_ + ".none", &anchor, "nothing", peeled_);
  }

 private:
  std::string name_;
  std::vector<std::string> peeled_;
};

OptimizeOptions with_misses(const std::vector<size_t>& depths) {
  OptimizeOptions options;
  for (size_t i = 0; i < depths.size(); ++i)
    options.rules.push_back(std::make_shared<Misses>("own" + std::to_string(i), std::vector<std::string>(depths[i], "Op")));
  return options;
}

std::vector<std::string> other_ids(const SiteReport& site) {
  std::vector<std::string> ids;
  for (const OtherMiss& other : site.other_misses) ids.push_back(other.pattern + ": " + other.id);
  return ids;
}

TEST(Sites, ThatAreMissedLeaveEqualNodesAsTheyWere) {
  Model model = attention_in_text(R"( kt = Transpose <perm = [0, 1, 3, 2]> (k) kt_again = Transpose <perm = [0, 1, 3, 2]> (k)
      s = MatMul (q, kt) s_again = MatMul (q, kt_again) w = Softmax <axis = -2> (s) w_again = Softmax <axis = -2> (s_again)
      w_sum = Add (w, w_again) y = MatMul (w_sum, v) )");
  const std::string before = model.proto.SerializeAsString();
  EXPECT_EQ(optimized(model).fused(), 0);
  EXPECT_EQ(model.proto.SerializeAsString(), before);
}

TEST(Sites, ThatAreMissedLeaveExpandsAsTheyWere) {
  Model model = in_memory(model_of_graph(R"((float[2,1,8] q, float[2,5,8] k, float[2,5,6] v, int64[3] sizes) => (float[2,6] y)
      <int64[1] last = {-1}, int64[3] repeats = {1, 5, 1}> {
      q_tiled = Tile (q, repeats) factors = Mul (q_tiled, k) x = ReduceSum <keepdims = 1> (factors, last)
      p = Softmax <axis = -1> (x) weighed = Mul (p, v) y = ReduceMax <axes = [1], keepdims = 0> (weighed) })",
                                         17));
  const std::string before = model.proto.SerializeAsString();
  EXPECT_EQ(optimized(model).fused(), 0);
  EXPECT_EQ(model.proto.SerializeAsString(), before);
}

// Attention pooling of instances (ABMIL, CLAM): the bias of a Linear is one number for each query, so that no draw of a case
// would tell whether it was read.
TEST(Sites, OfALinearWithABiasThatIsTurnedAreWritten) {
  Model model = in_memory(model_of_graph(R"((float[instances,8] x, float[2,8] w, float[2] bias) => (float[2,8] y) {
      scores = Gemm <transB = 1> (x, w, bias) turned = Transpose <perm = [1, 0]> (scores)
      probabilities = Softmax <axis = 1> (turned) y = MatMul (probabilities, x) })"));
  const Report report = optimized(model);
  EXPECT_EQ(report.fused(), 1);
  ASSERT_TRUE(report.sites[0].verification);
  EXPECT_EQ(report.sites[0].verification->verdict, Verdict::kVerified);
  EXPECT_EQ(count_of(model.proto, "Gemm"), 0);
}

TEST(Sites, AreOneForEachNodeWhateverMissesThere) {
  Model model = attention_in_text(attention_nodes("", "-2"));
  const Report alone = optimized(model), report = optimized(model, with_misses({0, 9, 8}));
  ASSERT_EQ(alone.sites.size(), 1u);
  ASSERT_EQ(report.sites.size(), 1u);
  EXPECT_EQ(report.sites[0].miss_id, "own1.none") << "it got furthest";
  EXPECT_EQ(report.sites[0].pattern, "own1");
  EXPECT_THAT(other_ids(report.sites[0]), ::testing::UnorderedElementsAre("softmax_attention: " + alone.sites[0].miss_id,
                                                                          "own0: own0.none", "own2: own2.none"));
  EXPECT_EQ(optimized(model, with_misses({0})).sites[0].miss_id, alone.sites[0].miss_id);
}

TEST(Sites, ThatAreFusedHaveNoMisses) {
  Model model = attention_in_text("unread = Softmax (q)" + attention_nodes(), "", ", float[2,2,5,8] unread");
  const Report report = optimized(model, with_misses({9}));
  EXPECT_EQ(report.fused(), 1);
  EXPECT_THAT(not_fused(report), ElementsAre("unread: own0.none"));
  for (const SiteReport& site : report.sites)
    if (site.outcome == SiteReport::Outcome::kFused) {
      EXPECT_THAT(site.other_misses, IsEmpty());
    }
}

TEST(Sites, ThatAreRefusedComeBeforeMisses) {
  Model model = attention_in_text();
  OptimizeOptions options = with_misses({9});
  options.stop_after = 0;
  const Report report = optimized(model, options);
  EXPECT_THAT(not_fused(report), ElementsAre("w: site.stopped"));
  EXPECT_THAT(other_ids(report.sites[0]), ElementsAre("own0: own0.none"));
  EXPECT_EQ(report.refused(), 1);
}

std::vector<std::string> imports(const Model& model) {
  std::vector<std::string> domains;
  for (const auto& import : model.proto.opset_import()) domains.push_back(import.domain());
  return domains;
}

/// An attention whose product is an operator that nothing can run.
Model of_unknown_operator() { return attention_in_text("s = other.Scores (q, k) w = Softmax (s) y = MatMul (w, v)"); }

TEST(Sites, ThatCannotBeRunAreLeftAndNameTheOperator) {
  auto rule = parse_rule(R"(# RULE scores
<domain: "rule", opset_import: ["" : 18, "other" : 3]>
pattern (q, k, v) => (y) { s = other.Scores (q, k) w = Softmax (s) y = MatMul (w, v) }
<domain: "rule", opset_import: ["" : 24]>
replacement (q, k, v) => (y) { y = Attention (q, k, v) })",
                         "r.rule");
  ASSERT_TRUE(rule.has_value()) << rule.error().message();
  OptimizeOptions options;
  options.only = {"scores"};
  options.rules = {std::shared_ptr<const Pattern>(*std::move(rule))};
  Model model = of_unknown_operator(), loose = model;
  const Report report = optimized(model, options);
  EXPECT_THAT(not_fused(report), ElementsAre("y: verification.unverified"));
  EXPECT_EQ(report.refused(), 1);
  EXPECT_THAT(report.sites[0].found, HasSubstr("other::Scores"));
  EXPECT_THAT(explain(report.sites[0]), HasSubstr("attn-opt explain --id verification.unverified"));
  options.allow_unverified = true;
  const Report allowed = optimized(loose, options);
  EXPECT_EQ(allowed.fused(), 1);
  EXPECT_THAT(to_text(allowed, false), HasSubstr("0 of 1 verified"));
  EXPECT_THAT(imports(loose), ElementsAre("")) << "no node is of 'other' any more";
}

/// Options with a rule NAME: NODES, of q, k and v, become Attention of scale 1.
OptimizeOptions with_rule(const std::string& name, const std::string& nodes) {
  auto rule = parse_rule("# RULE " + name + R"(
<domain: "rule", opset_import: ["" : 18]>
pattern (q, k, v) => (y) { )" +
                             nodes + R"( }
<domain: "rule", opset_import: ["" : 24]>
replacement (q, k, v) => (y) { y = Attention <scale: float = 1.0> (q, k, v) })",
                         "r.rule");
  EXPECT_TRUE(rule.has_value()) << rule.error().message();
  OptimizeOptions options;
  if (rule) options.rules = {std::shared_ptr<const Pattern>(*std::move(rule))};
  return options;
}

/// A rule that is wrong, around a softmax that attn-opt misses: the other attention beside it is missed alone.
TEST(Sites, OneThatARuleIsRefusedAtIsNotMissedToo) {
  OptimizeOptions options = with_rule(
      "wrong",
      "t = Transpose <perm: ints = [0, 1, 3, 2]> (k) s = MatMul (q, t) w = Softmax <axis: int = -2> (s) y = MatMul (w, v)");
  Model model = attention_in_text(attention_nodes("", "-2"));
  const Report report = optimized(model, options);
  EXPECT_THAT(not_fused(report), ElementsAre("y: "));
  ASSERT_EQ(report.sites.size(), 1u);
  EXPECT_THAT(other_ids(report.sites[0]), ElementsAre("softmax_attention: softmax.axis"));
  Model two = attention_in_text(attention_nodes("", "-2") + attention_nodes("o", "-3"), "", ", float[2,2,5,8] oy");
  EXPECT_THAT(not_fused(optimized(two, options)), ::testing::UnorderedElementsAre("y: ", "ow: softmax.axis"));
}

/// Attention of two factors, which the tool's own pattern knows too, at another anchor.
TEST(Sites, ThePatternOfTheHigherPriorityIsWritten) {
  OptimizeOptions options =
      with_rule("mine", "t = Transpose <perm: ints = [0, 1, 3, 2]> (k) s = MatMul (q, t) w = Softmax (s) y = MatMul (w, v)");
  const auto pattern_used = [&options] {
    Model model =
        attention_in_text("t = Transpose <perm = [0, 1, 3, 2]> (k) s = MatMul (q, t) w = Softmax (s) y = MatMul (w, v)");
    const Report report = optimized(model, options);
    EXPECT_EQ(report.sites.size(), 1u);
    EXPECT_EQ(report.fused(), 1);
    return report.sites[0].pattern;
  };
  EXPECT_EQ(pattern_used(), "softmax_attention");
  options.priorities = {{"mine", 101}};
  EXPECT_EQ(pattern_used(), "mine");
  options.priorities = {{"softmax_attention", 99}};
  EXPECT_EQ(pattern_used(), "mine");
  options.priorities = {{"no-such", 1}};
  Model model = attention_in_text("y = Abs (q)");
  EXPECT_THAT(optimize(model, options).error().message(), HasSubstr("there is no pattern or rewrite 'no-such'"));
}

void import_domain(Model& model, const std::string& domain) {
  auto* import = model.proto.add_opset_import();
  import->set_domain(domain);
  import->set_version(1);
}

/// A product of com.microsoft in an attention, and NODES.
Model with_contrib(const std::string& nodes = "") {
  Model model =
      attention_in_text("s = com.microsoft.FusedMatMul <transB = 1> (q, k) w = Softmax (s) y = MatMul (w, v)" + nodes);
  import_domain(model, "com.microsoft");
  return model;
}

TEST(Bodies, OfScanSayTheShapesOfPresents) {
  auto model = load_model(ATTN_OPT_TESTDATA "/cases/kv_cache/present_of_scan_body.onnxtxt");
  ASSERT_TRUE(model.has_value()) << model.error().message();
  EXPECT_EQ(optimized(*model).fused(), 1);
  const onnx::GraphProto& body = model->proto.graph().node(0).attribute(1).g();
  ASSERT_EQ(body.output_size(), 2);
  for (const auto& output : body.output()) EXPECT_EQ(output.type().tensor_type().shape().dim_size(), 4) << output.name();
}

TEST(Imports, GoWithTheirLastNode) {
  Model model = with_contrib();
  ASSERT_EQ(optimized(model).fused(), 1);
  EXPECT_THAT(imports(model), ElementsAre("", "other")) << "what was unused before stays";
  expect_valid(model.proto);
}

TEST(Imports, StayWhileAnythingUsesThem) {
  Model model = with_contrib(" q2 = com.microsoft.Gelu (q) read = other.Print (q2)");
  ASSERT_EQ(optimized(model).fused(), 1);
  EXPECT_THAT(imports(model), ElementsAre("", "other", "com.microsoft"));
  for (const std::string domain : {"com.microsoft", "own"}) {
    Model with_function = with_contrib();
    const std::string text =
        "<domain: \"" + domain + "\", opset_import: [\"\": 18, \"com.microsoft\": 1]> F (x) => (y) { y = Identity (x) }";
    ASSERT_TRUE(onnx::OnnxParser::Parse(*with_function.proto.add_functions(), text.c_str()).IsOK());
    if (domain != "com.microsoft") import_domain(with_function, domain);
    ASSERT_EQ(optimized(with_function).fused(), 1);
    EXPECT_THAT(imports(with_function), ::testing::Contains("com.microsoft")) << domain;
  }
}

TEST(Imports, OfAnUntouchedModelStay) {
  Model model = with_contrib();
  const std::string before = model.proto.SerializeAsString();
  OptimizeOptions options;
  options.stop_after = 0;
  EXPECT_FALSE(optimized(model, options).changed);
  EXPECT_EQ(model.proto.SerializeAsString(), before);
}

}  // namespace
}  // namespace attn_opt
