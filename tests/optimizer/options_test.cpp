// What the options let through.
#include "tests/optimizer/optimizer_case.h"

namespace attn_opt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Equal ones, of which no node reads both.
Model two_attentions() {
  return attention_in_text(attention_nodes("a") + attention_nodes("b") + "y = Identity (ay)", "", ", float[2,2,5,8] by");
}

OptimizeOptions with(auto set) {
  OptimizeOptions options;
  set(options);
  return options;
}

TEST(Options, OnlyAndDisable) {
  const std::string before = two_attentions().proto.SerializeAsString();
  const auto fused = [&](const OptimizeOptions& options) {
    Model model = two_attentions();
    const Report report = optimized(model, options);
    EXPECT_EQ(report.changed, report.fused() > 0);
    EXPECT_EQ(model.proto.SerializeAsString() == before, !report.changed);
    return report.fused();
  };
  EXPECT_EQ(fused({}), 2);
  EXPECT_EQ(fused(with([](auto& o) { o.only = {"softmax_attention"}; })), 2);
  EXPECT_EQ(fused(with([](auto& o) { o.only = {"attention_node"}; })), 0);
  EXPECT_EQ(fused(with([](auto& o) { o.disable = {"softmax_attention"}; })), 0);
  EXPECT_EQ(fused(with([](auto& o) { o.disable = {"attention_node"}; })), 2);
  EXPECT_EQ(fused(with([](auto& o) { o.only = o.disable = {"softmax_attention"}; })), 0);
}

TEST(Options, NamesOfNoPattern) {
  for (const auto& options :
       {with([](auto& o) { o.only = {"softmax_atention"}; }), with([](auto& o) { o.disable = {"softmax_atention"}; })}) {
    Model model = two_attentions();
    const auto report = optimize(model, options);
    ASSERT_FALSE(report.has_value());
    EXPECT_EQ(report.error().code, ErrorCode::kUsage);
    EXPECT_THAT(report.error().message(), HasSubstr("softmax_atention"));
  }
}

TEST(Options, WorkingsAreTheCallersAlone) {
  Model model = two_attentions();
  Workings workings;
  ASSERT_TRUE(optimize(model, {}, &workings).has_value());
  EXPECT_EQ(workings.use_count(), 1);
}

TEST(Options, StopAfter) {
  for (int sites : {0, 1, 2, 3, -1}) {
    Model model = two_attentions();
    const std::string before = model.proto.SerializeAsString();
    const Report report = optimized(model, with([&](auto& o) { o.stop_after = sites; }));
    const int expected = sites < 0 ? 2 : std::min(sites, 2);
    EXPECT_EQ(report.fused(), expected);
    EXPECT_EQ(report.refused(), 2 - expected);
    for (const std::string& site : not_fused(report)) EXPECT_THAT(site, HasSubstr("site.stopped"));
    EXPECT_EQ(count_of(model.proto, "Attention"), expected);
    EXPECT_EQ(model.proto.SerializeAsString() == before, expected == 0);
    expect_valid(model.proto);
  }
}

/// A Where that hides what is no number in the scores is only right if there is none: an assumption.
Model of_assumption() {
  return attention_in_text(R"( kt = Transpose <perm = [0, 1, 3, 2]> (k) s = MatMul (q, kt)
      m = Where (keep, s, fill) w = Softmax <axis = -1> (m) y = MatMul (w, v) )",
                           ", bool[5,5] keep");
}

TEST(Options, StrictRefusesWhatIsAssumed) {
  Model model = of_assumption();
  *model.proto.mutable_graph()->add_initializer() = to_proto(Tensor::scalar<float>(-INFINITY), "fill");
  Model strict = model;
  const Report loose = optimized(model);
  ASSERT_EQ(loose.fused(), 1);
  ASSERT_THAT(loose.sites[0].preconditions, ::testing::Contains(::testing::Field(&Precondition::proven, false)));
  const std::string before = strict.proto.SerializeAsString();
  const Report report = optimized(strict, with([](auto& o) { o.strict = true; }));
  EXPECT_EQ(report.fused(), 0);
  EXPECT_EQ(report.refused(), 1);
  EXPECT_EQ(report.sites[0].miss_id, "strict.assumed");
  EXPECT_EQ(strict.proto.SerializeAsString(), before);
}

TEST(Options, StrictKeepsWhatIsProven) {
  Model model = two_attentions();
  EXPECT_EQ(optimized(model, with([](auto& o) { o.strict = true; })).fused(), 2);
}

TEST(Options, VerifyingNothingOrEachSite) {
  Model off = two_attentions(), sites = two_attentions(), all = two_attentions();
  const Report unchecked = optimized(off, with([](auto& o) { o.verify = VerifyMode::kOff; }));
  EXPECT_EQ(unchecked.fused(), 2);
  EXPECT_FALSE(unchecked.sites[0].verification.has_value());
  const Report shared = optimized(sites);
  EXPECT_TRUE(shared.sites[1].verification->shared) << "equal to the first";
  const Report each = optimized(all, with([](auto& o) { o.verify = VerifyMode::kAllSites; }));
  EXPECT_FALSE(each.sites[1].verification->shared);
  EXPECT_EQ(off.proto.SerializeAsString(), sites.proto.SerializeAsString());
  EXPECT_EQ(off.proto.SerializeAsString(), all.proto.SerializeAsString());
}

TEST(Options, TheOpsetIsAFloor) {
  Model model = two_attentions();
  EXPECT_EQ(optimized(model, with([](auto& o) { o.opset = 25; })).opset_after, 25);
  Model newer = attention_in_text(attention_nodes("a") + "y = Identity (ay)", "", "", 25);
  EXPECT_EQ(optimized(newer).opset_after, 25);
  Model low = two_attentions();
  EXPECT_EQ(optimized(low, with([](auto& o) { o.opset = 20; })).opset_after, 23) << "Attention's own";
}

TEST(Options, ProgressEndsAtOne) {
  Model model = two_attentions();
  std::vector<double> parts;
  optimized(model, with([&](auto& o) { o.progress = [&](std::string_view, double part) { parts.push_back(part); }; }));
  EXPECT_THAT(parts, ElementsAre(0, 0.5, 1));
}

TEST(Options, PatternsAreListedByName) {
  std::vector<std::string> names;
  for (const auto& pattern : patterns()) names.emplace_back(pattern->name());
  EXPECT_THAT(names, ::testing::IsSupersetOf({"attention_node", "softmax_attention"}));
  EXPECT_TRUE(std::ranges::is_sorted(names));
}

}  // namespace
}  // namespace attn_opt
