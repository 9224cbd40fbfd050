// Rewrites in reports: beside the sites, and counted apart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "attn_opt/report.h"
#include "src/report/report_stream.h"

namespace attn_opt {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
using Outcome = SiteReport::Outcome;

RewriteReport applied() {
  RewriteReport line;
  line.outcome = Outcome::kFused;
  line.name = "/norm/Mul";
  line.op = "Mul";
  line.graph = "main";
  line.pattern = "rms-norm";
  line.nodes = {"/norm/Mul", "/norm/Sqrt"};
  line.operators = {"RMSNormalization"};
  line.verification = Verification{Verdict::kVerified, "", 1e-16, 0.5, 4, 0.1, false, {}};
  return line;
}

RewriteReport refused() {
  RewriteReport line = applied();
  line.outcome = Outcome::kRefused;
  line.verification = Verification{Verdict::kFailed, "y differs by 2", 2, 0, 1, 0.1, false, {}};
  line.miss_id = "verification.failed";
  line.miss_node = line.name;
  line.miss_op = line.op;
  line.found = "y differs by 2";
  return line;
}

RewriteReport missed() {
  RewriteReport line = applied();
  line.outcome = Outcome::kMissed;
  line.verification.reset();
  line.miss_id = "mine.clip";
  line.miss_node = line.name;
  line.miss_op = line.op;
  line.found = "no Clip";
  return line;
}

Report with(std::vector<RewriteReport> rewrites) {
  Report report;
  report.rewrites = std::move(rewrites);
  return report;
}

std::string written_as(ReportFormat format, const Report& report) {
  const auto stream = make_report_stream(format, ReportScope::kOne);
  const std::string begin = stream->begin(), model = stream->add({"in.onnx", "", 0, "", 1.5, to_json(report)});
  return begin + model + stream->end();
}

TEST(ReportRewrites, AreNoSites) {
  const Report report = with({applied(), refused()});
  EXPECT_EQ(report.rewritten(), 1);
  EXPECT_EQ(report.fused() + report.refused() + report.missed(), 0);
  EXPECT_EQ(to_json(report)["summary"]["rewritten"], 1);
  EXPECT_EQ(to_json(report)["summary"]["sites"], 0);
}

TEST(ReportRewrites, AreCountedByWhatBecameOfThem) {
  const json summary = to_json(with({applied(), refused(), missed(), missed()}))["summary"];
  EXPECT_EQ(summary["rewritten"], 1);
  EXPECT_EQ(summary["rewrites_refused"], 1);
  EXPECT_EQ(summary["rewrites_missed"], 2);
}

TEST(ReportRewrites, ManualSaysWhatTheirMissesMean) {
  EXPECT_TRUE(to_json(with({refused()}))["manual"]["misses"].contains("verification.failed"));
}

TEST(ReportRewrites, JunitHasATestForEach) {
  const std::string xml = written_as(ReportFormat::kJunit, with({applied(), refused(), missed()}));
  EXPECT_THAT(xml, HasSubstr("tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\""));
  EXPECT_THAT(xml, HasSubstr("name=\"rms-norm at /norm/Mul\" time=\"0.100\"><system-out>rms-norm: 2 nodes become"));
  EXPECT_THAT(xml, HasSubstr("<failure type=\"verification.failed\" message=\"rms-norm: verification.failed at /norm/Mul"));
  EXPECT_THAT(xml, HasSubstr("<skipped type=\"mine.clip\""));
}

TEST(ReportRewrites, SarifHasWhatIsNotAppliedAndWhatIsNotShownToBeEqual) {
  RewriteReport unverified = applied();
  unverified.verification = Verification{Verdict::kUnverified, "no kernel for acme::Op", 0, 0, 0, 0.1, false, {}};
  Report report = with({applied(), refused(), missed(), unverified});
  report.input = "in.onnx";
  report.options = "--also rms-norm";
  const json results = json::parse(written_as(ReportFormat::kSarif, report))["runs"][0]["results"];
  ASSERT_EQ(results.size(), 3U) << "what is applied and verified is no finding";
  EXPECT_EQ(results[0]["ruleId"], "verification.failed");
  EXPECT_EQ(results[0]["level"], "error");
  EXPECT_EQ(results[0]["message"]["text"],
            "Rewrite rms-norm at /norm/Mul is not applied: y differs by 2 (Mul) [verification.failed]. "
            "Run: attn-opt explain in.onnx --node /norm/Mul --also rms-norm");
  EXPECT_EQ(results[0]["partialFingerprints"], json({{"rewrite/v1", "main//norm/Mul rms-norm verification.failed"}}));
  EXPECT_EQ(results[1]["ruleId"], "mine.clip");
  EXPECT_EQ(results[1]["level"], "warning");
  EXPECT_EQ(results[2]["ruleId"], "verification.unverified");
  EXPECT_THAT(results[2]["message"]["text"].get<std::string>(),
              HasSubstr("is applied and was not verified: no kernel for acme::Op. Run: "));
}

TEST(ReportRewrites, InJson) {
  const json lines = to_json(with({applied(), refused()}))["rewrites"];
  EXPECT_EQ(lines[0]["kind"], "rewrite");
  EXPECT_EQ(lines[0]["outcome"], "rewritten");
  EXPECT_EQ(lines[0]["pattern"], "rms-norm");
  EXPECT_EQ(lines[0]["nodes"], json({"/norm/Mul", "/norm/Sqrt"}));
  EXPECT_EQ(lines[0]["written"], json({"RMSNormalization"}));
  EXPECT_EQ(lines[0]["verification"]["verdict"], "verified");
  EXPECT_EQ(lines[0]["summary"], "rms-norm: 2 nodes become RMSNormalization, verified (1e-16, 0.5 ulp)");
  EXPECT_TRUE(lines[0]["miss"].is_null());
  EXPECT_EQ(lines[1]["outcome"], "refused");
  EXPECT_EQ(lines[1]["miss"]["id"], "verification.failed");
}

TEST(ReportRewrites, InText) {
  Report report = with({applied(), refused()});
  EXPECT_THAT(to_text(report, false), HasSubstr("rewrites: 1 applied (1 verified), 1 refused, 0 missed\n"));
  EXPECT_THAT(to_text(report, false), Not(HasSubstr("rewritten  ")));
  EXPECT_THAT(to_text(report, false),
              ::testing::EndsWith(
                  "\n\nrefused    /norm/Mul\n           rms-norm: verification.failed at /norm/Mul (Mul): y differs by 2\n"));
  EXPECT_THAT(to_text(with({applied()}), false), Not(HasSubstr("/norm/Mul")));
  EXPECT_THAT(to_text(with(std::vector<RewriteReport>(7, refused())), false), ::testing::EndsWith("differs by 2\n2 more\n"));
  EXPECT_THAT(to_text(report, true), HasSubstr("rewritten  /norm/Mul\n           rms-norm: 2 nodes become RMSNormalization"));
  EXPECT_THAT(to_text(report, true),
              HasSubstr("refused    /norm/Mul\n           rms-norm: verification.failed at /norm/Mul (Mul): y differs by 2"));
  report.has_rewrites_left = true;
  EXPECT_THAT(to_text(report, false), HasSubstr("the rounds were not enough"));
  EXPECT_THAT(to_text({}, true), Not(HasSubstr("rewrites")));
}

TEST(ReportRewrites, AloneAreNotSaidToBeNoAttention) {
  Report report = with({applied(), refused()});
  EXPECT_THAT(to_text(report, false), ::testing::StartsWith("rewrites: 1 applied (1 verified), 1 refused, 0 missed\n"));
  EXPECT_THAT(written_as(ReportFormat::kMarkdown, report), HasSubstr("\n\n**1 of 2 rewrites can be applied**, "));
  report.attention_nodes = 2;
  EXPECT_THAT(to_text(report, false),
              ::testing::StartsWith("no attention to fuse: 2 are attention operators already\nrewrites: 1 applied"));
  report.sites.emplace_back();
  EXPECT_THAT(to_text(report, false), ::testing::StartsWith("attention sites: 0 of 1 fused"));
  EXPECT_THAT(written_as(ReportFormat::kMarkdown, report),
              HasSubstr("**0 of 1 attention sites can be fused, 1 of 2 rewrites can be applied**, "));
}

TEST(ReportRewrites, OfABatchAreCounted) {
  const auto stream = make_report_stream(ReportFormat::kMarkdown, ReportScope::kMany);
  stream->begin();
  for (const Report& report : {with({applied(), refused()}), with({applied()}), Report{}})
    stream->add({"in.onnx", "", 0, "", 1.5, to_json(report)});
  EXPECT_THAT(stream->end(), HasSubstr("3 models: 3 done; 2 of 3 rewrites applied.\n"));
}

TEST(ReportRewrites, Explained) {
  EXPECT_THAT(explain(applied()),
              HasSubstr("/norm/Mul  rewritten  [rms-norm]\n  nodes     /norm/Mul, /norm/Sqrt\n  written   RMSNormalization\n"));
  EXPECT_THAT(
      explain(refused()),
      HasSubstr("  stopped   at /norm/Mul (Mul): y differs by 2\n  hint      attn-opt explain --id verification.failed\n"));
}

}  // namespace
}  // namespace attn_opt
