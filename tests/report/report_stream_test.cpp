#include "src/report/report_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/report/example_report.h"

namespace attn_opt {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

ModelOutcome outcome(int status = 0, const std::string& message = "") {
  return {"in.onnx", "out.onnx", status, message, 1.5, to_json(full_report())};
}

std::string rendered(ReportFormat format, const std::vector<ModelOutcome>& models, ReportScope scope = ReportScope::kOne) {
  const auto stream = make_report_stream(format, scope);
  std::string text = stream->begin();
  for (const ModelOutcome& model : models) text += stream->add(model);
  return text + stream->end();
}

ModelOutcome unreadable() { return {"bad.onnx", "", 3, "bad.onnx: is not ONNX", 0, json()}; }

TEST(ReportStream, EndingsAndNamesChooseTheFormat) {
  EXPECT_EQ(report_format_of("a/report.json"), ReportFormat::kJson);
  EXPECT_EQ(report_format_of("report.sarif"), ReportFormat::kSarif);
  EXPECT_EQ(report_format_of("report.sarif.json"), ReportFormat::kSarif);
  EXPECT_EQ(report_format_of("report.xml"), ReportFormat::kJunit);
  EXPECT_EQ(report_format_of("report.md"), ReportFormat::kMarkdown);
  EXPECT_EQ(report_format_of("report.html"), ReportFormat::kHtml);
  EXPECT_EQ(report_format_of("report.svg"), ReportFormat::kSvg);
  EXPECT_EQ(report_format_of("report.dot"), ReportFormat::kDot);
  EXPECT_EQ(report_format_of("report.txt"), std::nullopt);
  EXPECT_EQ(report_format_named("junit"), ReportFormat::kJunit);
  EXPECT_EQ(report_format_named("xml"), std::nullopt);
}

TEST(ReportStream, JsonOfOneModelIsItsReport) {
  EXPECT_EQ(json::parse(rendered(ReportFormat::kJson, {outcome()})), to_json(full_report()));
}

TEST(ReportStream, JsonOfManyHasThemAllAndTheirSum) {
  const json batch = json::parse(rendered(ReportFormat::kJson, {outcome(), unreadable(), outcome(1, "x")}, ReportScope::kMany));
  ASSERT_EQ(batch["models"].size(), 3u);
  EXPECT_EQ(batch["models"][1], json({{"input", "bad.onnx"},
                                      {"output", nullptr},
                                      {"status", 3},
                                      {"seconds", 0.0},
                                      {"message", "bad.onnx: is not ONNX"},
                                      {"report", nullptr}}));
  EXPECT_EQ(batch["summary"]["status"], 3);
  EXPECT_EQ(batch["summary"]["by_status"], json({{"0", 1}, {"1", 1}, {"3", 1}}));
  EXPECT_EQ(batch["summary"]["fused"], 2);
  EXPECT_EQ(batch["summary"]["misses"], json({{"softmax.axis", 2}}));
  EXPECT_EQ(json::parse(rendered(ReportFormat::kJson, {}, ReportScope::kMany))["summary"]["models"], 0);
}

TEST(ReportStream, SarifSaysWhatIsNotFusedAndWhatDiffers) {
  const json run = json::parse(rendered(ReportFormat::kSarif, {outcome(1, "--require-fused all: 1 of 3")}))["runs"][0];
  ASSERT_EQ(run["results"].size(), 2u) << "what is fused and verified is no finding";
  const json& missed = run["results"][0];
  EXPECT_EQ(missed["ruleId"], "softmax.axis");
  EXPECT_EQ(missed["level"], "warning");
  EXPECT_EQ(missed["message"]["text"],
            "Attention main/If:else//layers.1/attn/Softmax is not fused: axis -2, the queries (Softmax) [softmax.axis]. "
            "Run: attn-opt explain in.onnx --node main/If:else//layers.1/attn/Softmax");
  EXPECT_THAT(run["tool"]["driver"]["informationUri"].get<std::string>(), testing::StartsWith("https://"));
  EXPECT_EQ(missed["locations"][0]["logicalLocations"][0]["fullyQualifiedName"], "main/If:else//layers.1/attn/Softmax");
  EXPECT_EQ(missed["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "in.onnx");
  EXPECT_EQ(run["results"][1]["ruleId"], "verification.failed");
  EXPECT_EQ(run["results"][1]["level"], "error");
  const json& rule = run["tool"]["driver"]["rules"][0];
  EXPECT_EQ(rule["id"], "softmax.axis");
  EXPECT_EQ(rule["helpUri"], run["tool"]["driver"]["informationUri"]);
  EXPECT_THAT(rule["help"]["markdown"].get<std::string>(), AllOf(HasSubstr("- Example: "), HasSubstr("- Remedy: ")));
  EXPECT_THAT(rule["shortDescription"]["text"].get<std::string>(), ::testing::EndsWith("."));
  EXPECT_THAT(rule["help"]["text"].get<std::string>(), Not(HasSubstr("`")));
  EXPECT_EQ(run["invocations"][0]["exitCode"], 1);
  EXPECT_EQ(run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"], "--require-fused all: 1 of 3");
}

TEST(ReportStream, SarifTellsWhatWasLostAndQuotesItsCommand) {
  ModelOutcome model = outcome();
  model.report["input"] = model.input = "my model's.onnx";
  model.report["sites"][1]["lost"] = true;
  const json result = json::parse(rendered(ReportFormat::kSarif, {model}))["runs"][0]["results"][0];
  EXPECT_EQ(result["level"], "error");
  EXPECT_THAT(result["message"]["text"].get<std::string>(),
              AllOf(HasSubstr(" is no longer fused: "), HasSubstr("explain 'my model'\\''s.onnx' --node")));
}

TEST(ReportStream, SarifHasARuleOnceForAllModels) {
  const json run =
      json::parse(rendered(ReportFormat::kSarif, {outcome(), unreadable(), outcome()}, ReportScope::kMany))["runs"][0];
  EXPECT_EQ(run["artifacts"].size(), 3u);
  EXPECT_EQ(run["results"].size(), 4u);
  EXPECT_EQ(run["results"][2]["locations"][0]["physicalLocation"]["artifactLocation"]["index"], 2);
  EXPECT_EQ(run["tool"]["driver"]["rules"].size(), 2u);
}

TEST(ReportStream, SarifWritesPathsAsAddresses) {
  ModelOutcome model = outcome();
  model.input = "/a b/#1%.onnx";
  const json run = json::parse(rendered(ReportFormat::kSarif, {model}))["runs"][0];
  EXPECT_EQ(run["artifacts"][0]["location"]["uri"], "file:///a%20b/%231%25.onnx");
}

/// A report with one site, which is not fused, of line 10 of FILE.
ModelOutcome missed_in(const std::string& file) {
  Report report = full_report();
  report.sites = {missed_site()};
  report.sites[0].module = "b.5";
  report.sites[0].source_file = file;
  report.sites[0].source_line = 10;
  return {"in.onnx", "", 0, "", 0, to_json(report)};
}

json sarif_result(const std::string& source_file) {
  return json::parse(rendered(ReportFormat::kSarif, {missed_in(source_file)}))["runs"][0]["results"][0];
}

TEST(ReportStream, SarifPointsAtTheUsersSourceLine) {
  const json result = sarif_result("src/model.py");
  const json& place = result["locations"][0];
  EXPECT_EQ(place["physicalLocation"]["artifactLocation"]["uri"], "src/model.py");
  EXPECT_EQ(place["physicalLocation"]["region"]["startLine"], 10);
  EXPECT_EQ(place["logicalLocations"][1], json({{"name", "b.5"}, {"kind", "module"}}));
  EXPECT_EQ(result["relatedLocations"][0]["physicalLocation"]["artifactLocation"]["uri"], "in.onnx");
  const json installed = sarif_result("lib/site-packages/torch/a.py");
  EXPECT_EQ(installed["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "in.onnx")
      << "no pull request has that file";
  EXPECT_FALSE(installed.contains("relatedLocations"));
}

TEST(ReportStream, SarifKnowsASiteAgainWhenItsNodeIsNumberedAnew) {
  const auto fingerprints = [](const std::string& node, bool has_module) {
    ModelOutcome model = missed_in("src/model.py");
    json& site = model.report["sites"][0];
    site["name"] = node;
    if (!has_module) site["module"] = nullptr;
    model.report["sites"] = json::array({site, site});
    const json run = json::parse(rendered(ReportFormat::kSarif, {model}))["runs"][0];
    std::vector<std::string> found;
    for (const json& result : run["results"]) found.push_back(result["partialFingerprints"]["attentionSite/v1"]);
    return found;
  };
  EXPECT_EQ(fingerprints("node_softmax_5", true), fingerprints("node_softmax_7", true));
  EXPECT_NE(fingerprints("node_softmax_5", false), fingerprints("node_softmax_7", false));
  const auto two = fingerprints("p", true);
  EXPECT_NE(two.at(0), two.at(1));
}

TEST(ReportStream, SarifFindsASourceFileOfAnotherMachineFromHere) {
  namespace fs = std::filesystem;
  const fs::path before = fs::current_path(),
                 folder = fs::temp_directory_path() / ("attn-opt-sarif-" + std::to_string(getpid()));
  fs::create_directories(folder / "src");
  std::ofstream(folder / "src/model.py") << "x";
  fs::current_path(folder);
  const json result = sarif_result("/home/other/project/src/model.py"), elsewhere = sarif_result("/home/other/none.py");
  fs::current_path(before);
  fs::remove_all(folder);
  const auto uri = [](const json& one) { return one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]; };
  EXPECT_EQ(uri(result), "src/model.py");
  EXPECT_EQ(uri(elsewhere), "in.onnx") << "a file that there is not shows no alert";
  EXPECT_FALSE(elsewhere.contains("relatedLocations"));
}

TEST(ReportStream, MarkdownAndJunitSayModuleAndSourceLine) {
  ModelOutcome model = missed_in("src/model.py");
  model.report["sites"][0]["name"] = "node_softmax_5";
  EXPECT_THAT(rendered(ReportFormat::kMarkdown, {model}), HasSubstr("| `b.5 (model.py:10)` `main/If:else/node_softmax_5` |"));
  EXPECT_THAT(rendered(ReportFormat::kJunit, {model}), HasSubstr("message=\"softmax.axis: b.5 (model.py:10): at "));
}

TEST(ReportStream, JunitHasATestForEachSite) {
  const std::string xml = rendered(ReportFormat::kJunit, {outcome()});
  EXPECT_THAT(xml,
              HasSubstr("<testsuite name=\"in.onnx\" tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\" time=\"1.500\">"));
  EXPECT_THAT(xml, HasSubstr("name=\"/layers.0/attn/Softmax\" time=\"0.251\"><system-out>"));
  EXPECT_THAT(xml, HasSubstr("name=\"main/If:else//layers.1/attn/Softmax\" time=\"0.000\"><skipped type=\"softmax.axis\""));
  EXPECT_THAT(xml, HasSubstr("<failure type=\"verification.failed\""));
}

TEST(ReportStream, JunitFailsLostSitesByTheirModules) {
  ModelOutcome model = missed_in("src/model.py");
  model.report["sites"][0]["lost"] = true;
  EXPECT_THAT(
      rendered(ReportFormat::kJunit, {model}),
      AllOf(
          HasSubstr("name=\"b.5\" time=\"0.000\"><failure type=\"softmax.axis\" message=\"no longer fused: (model.py:10): at "),
          HasSubstr("failures=\"1\"")));
  model.report["sites"].push_back(model.report["sites"][0]);
  EXPECT_THAT(rendered(ReportFormat::kJunit, {model}), Not(HasSubstr("name=\"b.5\""))) << "two of one module";
}

TEST(ReportStream, JunitTellsUnmetRequirementsFromErrors) {
  EXPECT_THAT(rendered(ReportFormat::kJunit, {outcome(1, "<all> & \"more\"")}),
              AllOf(HasSubstr("tests=\"4\" failures=\"2\""),
                    HasSubstr("<failure type=\"status 1\" message=\"&lt;all&gt; &amp; &quot;more&quot;\"/>")));
  EXPECT_THAT(rendered(ReportFormat::kJunit, {unreadable()}),
              AllOf(HasSubstr("tests=\"1\" failures=\"0\" errors=\"1\""), HasSubstr("<error type=\"status 3\"")));
}

TEST(ReportStream, MarkdownPutsEqualSitesIntoOneRow) {
  Report report = full_report();
  report.sites.push_back(report.sites.front());
  report.sites.back().name = "another|one";
  const std::string text = rendered(ReportFormat::kMarkdown, {{"in.onnx", "out.onnx", 0, "", 0, to_json(report)}});
  EXPECT_THAT(text, HasSubstr("### attn-opt: `in.onnx`\n\n**2 of 4 attention sites fused**, opset 17 → 24"));
  EXPECT_THAT(text, HasSubstr("| 2 | fused | `/layers.0/attn/Softmax` | 4d, 8 heads on 2, with past, verified"));
  EXPECT_THAT(
      text, HasSubstr("\n\n2 of 2 verified; 2 sites assume that scores are finite (explain says why, --strict refuses).\n\n"));
  EXPECT_THAT(text, HasSubstr("| 1 | missed `softmax.axis` | `main/If:else//layers.1/attn/Softmax` | axis -2, the queries"));
  EXPECT_THAT(text, Not(HasSubstr("[softmax.axis]"))) << "the id stands beside it";
  EXPECT_THAT(text, HasSubstr("| sites | outcome | example site | result |"));
  EXPECT_THAT(text, HasSubstr("`attn-opt explain --id ID` says what to do.\n"));
  EXPECT_THAT(text, HasSubstr("- `softmax.axis` (1 site): "));
}

TEST(ReportStream, MarkdownKeepsErrorsWhole) {
  const std::string message = "attention is no longer fused: " + std::string(300, 'x') + "; run: this";
  EXPECT_THAT(rendered(ReportFormat::kMarkdown, {outcome(1, message)}), HasSubstr(message));
  EXPECT_THAT(rendered(ReportFormat::kMarkdown, {outcome(1, message)}, ReportScope::kMany), HasSubstr(message));
}

TEST(ReportStream, MarkdownKeepsAssumptionsWhole) {
  ModelOutcome model = outcome();
  model.report["summary"]["assumed"] = {{"scores-finite", 1},   {"scores-above-fill", 1}, {"scores-within-clamp", 1},
                                        {"rows-keep-a-key", 1}, {"exp-in-range", 1},      {"sizes-not-empty", 1}};
  for (const ReportScope scope : {ReportScope::kOne, ReportScope::kMany})
    EXPECT_THAT(rendered(ReportFormat::kMarkdown, {model}, scope),
                AllOf(HasSubstr("1 that scores are above the mask's fill, 1 that scores are finite, 1 that scores are within a "
                                "clamp (explain says why, --strict refuses)"),
                      HasSubstr("no size is 0.\n\n")));
}

/// A model whose missed sites are drawn, each another one.
ModelOutcome drawn(const std::string& name, int status, int sites) {
  Report report = full_report();
  report.sites.clear();
  for (int i = 0; i < sites; ++i) {
    SiteReport site;
    site.name = name + std::to_string(i);
    site.miss_id = "scores.operator";
    site.before = SiteGraph{{{"squash", "Elu" + std::to_string(i), SiteGraph::Node::Role::kStopped, {}}}, {}, false};
    site.found = site.before->nodes[0].op;
    report.sites.push_back(site);
  }
  return {name, "", status, "", 1.5, to_json(report)};
}

TEST(ReportStream, MarkdownOfManyDrawsWhatIsMissed) {
  const std::string text = rendered(ReportFormat::kMarkdown, {drawn("old", 0, 3), drawn("lost", 1, 2)}, ReportScope::kMany);
  const auto at = [&text](const std::string& name) { return text.find("<summary>" + name + "</summary>\n\n```mermaid\n"); };
  EXPECT_LT(at("lost: lost0"), at("lost: lost1")) << text;
  EXPECT_LT(at("lost: lost1"), at("old: old0")) << "that of a model with an error comes first";
  EXPECT_NE(at("old: old1"), std::string::npos);
  EXPECT_EQ(at("old: old2"), std::string::npos) << "four are drawn";
}

TEST(ReportStream, MarkdownOfManyHasARowForEach) {
  const std::string text = rendered(ReportFormat::kMarkdown, {outcome(), unreadable()}, ReportScope::kMany);
  EXPECT_THAT(text, HasSubstr("| `in.onnx` | 0 | 3 | 1 | 1 | 1 |  |\n| `bad.onnx` | 3 |  | | |"));
  EXPECT_THAT(text,
              HasSubstr("2 models: 1 done, 1 not readable; 1 of 3 attention sites fused.\n\n1 of 1 verified; 1 site assumes "
                        "that scores are finite "
                        "(explain says why, --strict refuses).\n\n"));
}

}  // namespace
}  // namespace attn_opt
