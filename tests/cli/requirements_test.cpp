#include "src/cli/options/requirements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attn_opt {
namespace {

using Outcome = SiteReport::Outcome;

Report report_of(const std::vector<Outcome>& outcomes) {
  Report report;
  for (const Outcome outcome : outcomes) report.sites.emplace_back().outcome = outcome;
  return report;
}

/// The exit status that REPORT leads to; 0 if everything required is met.
int status_of(const Requirements& required, const Report& report) {
  const Status met = check_requirements(required, report);
  return met ? 0 : exit_status(met.error().code);
}

TEST(Requirements, NoneAreAlwaysMet) { EXPECT_EQ(status_of({}, report_of({Outcome::kMissed, Outcome::kRefused})), 0); }

TEST(Requirements, CountFusedSites) {
  const Report report = report_of({Outcome::kFused, Outcome::kMissed, Outcome::kFused});
  EXPECT_EQ(status_of({.fused = 2}, report), 0);
  EXPECT_EQ(status_of({.fused = 3}, report), 1);
  EXPECT_THAT(check_requirements({.fused = 3}, report_of({Outcome::kFused})).error().message(),
              testing::EndsWith("1 of 1 attention site is fused; more were not found"));
  EXPECT_EQ(status_of({.all_fused = true}, report), 1);
  EXPECT_EQ(status_of({.all_fused = true}, report_of({Outcome::kFused})), 0);
}

TEST(Requirements, TheFirstThatIsNotFusedIsNamedWithItsCommand) {
  Report report = report_of({Outcome::kFused, Outcome::kMissed, Outcome::kMissed});
  report.input = "in.onnx";
  SiteReport& site = report.sites[1];
  site.name = "node_softmax_5";
  site.graph = "main";
  site.module = "b.5";
  site.miss_id = "scores.operator";
  site.miss_op = site.found = "Elu";
  EXPECT_THAT(check_requirements({.all_fused = true}, report).error().message(),
              testing::AllOf(testing::HasSubstr("1 of 3 attention sites are fused, and not b.5: Elu"),
                             testing::EndsWith("; run: attn-opt explain in.onnx --node node_softmax_5")));
}

TEST(Requirements, AllOfNoAttentionIsTakenForAFault) {
  EXPECT_EQ(status_of({.all_fused = true}, report_of({})), 1) << "a recogniser or a model that is no longer what it was";
  EXPECT_EQ(status_of({.all_fused = true, .allow_none = true}, report_of({})), 0);
  EXPECT_EQ(status_of({.all_fused = true, .allow_none = true}, report_of({Outcome::kMissed})), 1);
  EXPECT_EQ(status_of({.fused = 0}, report_of({})), 0);
}

TEST(Requirements, AModelThatCannotBeRaisedIsNotAllFused) {
  Report report = report_of({});
  report.not_raised = {"node (Op)"};
  EXPECT_EQ(status_of({.all_fused = true}, report), 1);
}

TEST(Requirements, AMismatchFailsOnlyIfAsked) {
  Report report = report_of({Outcome::kFused, Outcome::kRefused});
  const Requirements strict_about_numbers{.fail_on_mismatch = true};
  EXPECT_EQ(status_of(strict_about_numbers, report), 0) << "refused, but not for its numbers";
  report.sites[1].verification = Verification{};
  EXPECT_EQ(status_of(strict_about_numbers, report), 0) << "unverified";
  report.sites[1].verification->verdict = Verdict::kFailed;
  EXPECT_EQ(status_of(strict_about_numbers, report), 4);
  EXPECT_EQ(status_of({}, report), 0);
}

TEST(Requirements, CheckFailsIfAnythingCanBeFused) {
  EXPECT_EQ(status_of({.check = true}, report_of({Outcome::kFused})), 1);
  EXPECT_EQ(status_of({.check = true}, report_of({Outcome::kMissed})), 0);
}

}  // namespace
}  // namespace attn_opt
