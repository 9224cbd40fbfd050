// A run whose result ONNX's checker refuses is made again without the site that is in the way.
#include <gmock/gmock.h>

#include "attn_opt/model_io.h"
#include "src/cli/job_steps.h"

namespace attn_opt {
namespace {

Model four_layers() {
  auto model = load_model(ATTN_OPT_TESTDATA "/models/timm-swin-ts17e.onnx");
  EXPECT_TRUE(model) << model.error().message();
  return model ? *std::move(model) : Model{};
}

std::vector<std::string> fused_sites(const OptimizeOptions& options = {}) {
  std::vector<std::string> names;
  OptimizeOptions noting = options;
  noting.on_commit = [&names](const ModelGraph&, const std::string& site) { names.push_back(site); };
  Model model = four_layers();
  EXPECT_TRUE(optimize(model, noting));
  return names;
}

/// Spoils the model after each commit of one of SITES.
OptimizeOptions spoiling(const std::vector<std::string>& sites) {
  OptimizeOptions options;
  options.on_commit = [sites](const ModelGraph& view, const std::string& site) {
    if (std::ranges::find(sites, site) == sites.end()) return;
    for (const Node* node : view.main().nodes())
      if (!node->removed) return node->proto->set_op_type("NoSuchOperator");
  };
  return options;
}

std::vector<std::string> left_sites(const Report& report) {
  std::vector<std::string> names;
  for (const SiteReport& site : report.sites)
    if (site.miss_id == "site.invalid") names.push_back(site.name);
  return names;
}

TEST(ValidResult, TheSiteInTheWayIsLeft) {
  const auto sites = fused_sites();
  ASSERT_EQ(sites.size(), 4u);
  for (const std::string& site : sites) {
    Model model = four_layers();
    const auto report = optimize_to_valid(model, spoiling({site}));
    ASSERT_TRUE(report) << report.error().message();
    EXPECT_THAT(left_sites(*report), testing::ElementsAre(site));
    EXPECT_EQ(report->fused(), 3);
    EXPECT_TRUE(check_model(model));
  }
}

TEST(ValidResult, SeveralSitesInTheWay) {
  const auto sites = fused_sites();
  ASSERT_EQ(sites.size(), 4u);
  Model model = four_layers();
  const auto report = optimize_to_valid(model, spoiling({sites[0], sites[2]}));
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_THAT(left_sites(*report), testing::UnorderedElementsAre(sites[0], sites[2]));
  EXPECT_TRUE(check_model(model));
}

TEST(ValidResult, AllSitesInTheWayLeaveTheModelAsItWas) {
  Model model = four_layers();
  const std::string before = model.proto.SerializeAsString();
  const auto report = optimize_to_valid(model, spoiling(fused_sites()));
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_FALSE(report->changed);
  EXPECT_EQ(model.proto.SerializeAsString(), before);
}

TEST(ValidResult, WhatWasReadIsReadAgain) {
  Model model = four_layers();
  const std::string before = model.proto.SerializeAsString();
  ASSERT_TRUE(optimize(model, {}));
  ASSERT_NE(model.proto.SerializeAsString(), before);
  const auto again = as_it_was_read(model);
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(again->proto.SerializeAsString(), before);
  EXPECT_EQ(as_it_was_read({before.empty() ? onnx::ModelProto() : model.proto, "-", {}}).error().code, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace attn_opt
