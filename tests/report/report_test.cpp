#include "attn_opt/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/report/example_report.h"

namespace attn_opt {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Of the lines of TEXT without NAME.
size_t longest_line(const std::string& text, const std::string& name) {
  size_t longest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.find(name) == std::string::npos) longest = std::max(longest, line.size());
  return longest;
}

TEST(Report, CountsOutcomes) {
  Report report = full_report();
  report.sites.push_back(fused_site());
  EXPECT_EQ(report.fused(), 2);
  EXPECT_EQ(report.missed(), 1);
  EXPECT_EQ(report.refused(), 1);
}

TEST(ReportJson, HoldsTheRun) {
  const json whole = to_json(full_report());
  EXPECT_EQ(whole["schema_version"], 1);
  EXPECT_EQ(whole["tool"], json({{"name", "attn-opt"}, {"version", "0.1.0"}}));
  EXPECT_EQ(whole["input"], "in.onnx");
  EXPECT_EQ(whole["output"], "out.onnx");
  EXPECT_EQ(whole["changed"], true);
  EXPECT_EQ(whole["opset"], json({{"before", 17}, {"after", 24}}));
  EXPECT_EQ(whole["nodes"], json({{"before", 120}, {"after", 90}}));
  EXPECT_EQ(whole["operators"][0], json({{"op", "Attention"}, {"before", 0}, {"after", 1}}));
  EXPECT_EQ(whole["summary"], json({{"sites", 3},
                                    {"fused", 1},
                                    {"refused", 1},
                                    {"missed", 1},
                                    {"assumed", {{"scores-finite", 1}}},
                                    {"refined", 0},
                                    {"unverified", 0},
                                    {"rewritten", 0},
                                    {"rewrites_refused", 0},
                                    {"rewrites_missed", 0}}));
  EXPECT_EQ(whole["seconds"]["read"], 0.5);
  EXPECT_EQ(whole["not_raised"], json::array());
}

TEST(ReportJson, CountsTheFusedSitesThatDependOnEachAssumption) {
  Report report = full_report();
  SiteReport site = fused_site();
  site.preconditions = {{"scores-finite", false, ""},
                        {"scores-finite", false, "twice"},
                        {"exp-in-range", false, ""},
                        {"rows-keep-a-key", false, "", true}};
  site.verification.reset();
  report.sites.push_back(site);
  site.outcome = SiteReport::Outcome::kRefused;
  report.sites.push_back(site);
  const json summary = to_json(report)["summary"];
  EXPECT_EQ(summary["assumed"], json({{"scores-finite", 2}, {"exp-in-range", 1}}));
  EXPECT_EQ(summary["refined"], 1);
  EXPECT_EQ(summary["unverified"], 1);
  EXPECT_THAT(to_text(report, false),
              HasSubstr("1 of 2 verified; 1 site assumes that exp() stays in its range, 2 that scores are finite (explain\n"
                        "says why, --strict refuses); at 1 NaN may become a number\n"));
  EXPECT_THAT(explain(report.sites[report.sites.size() - 2]), HasSubstr("  refined   rows-keep-a-key\n"));
}

TEST(ReportJson, HoldsAFusedSite) {
  const json expected = json::parse(R"json({
    "kind": "attention", "name": "/layers.0/attn/Softmax", "op": "Softmax", "graph": "main", "module": null, "source_file": null, "source_line": null,
    "pattern": "softmax_attention", "outcome": "fused", "lost": null, "summary": "4d, 8 heads on 2, with past, verified (3e-16, 0.5 ulp)", "form": "4d", "q_heads": 8, "kv_heads": 2, "past": true, "scale": 0.125, "softcap": 0.0,
    "is_causal": false, "mask": null, "group": 0, "type": "float16",
    "tensors": {"Q": ["q"], "output": ["y"]}, "nodes_before": ["/layers.0/attn/Softmax", "/layers.0/attn/MatMul"],
    "nodes_after": ["attention"],
    "peeled": ["Cast", "bias", "scale"],
    "preconditions": [{"id": "scores-finite", "proven": false, "refinement": false, "detail": "nothing bounds Q K^T"},
                      {"id": "sizes-equal", "proven": true, "refinement": false, "detail": "both are seq"}],
    "verification": {"verdict": "verified", "reason": null, "algebra_difference": 3e-16, "type_difference_ulp": 0.5,
                     "draws": 12, "seconds": 0.25, "shared": false, "explained_by": ["rows-keep-a-key"]},
    "effect": {"score_bytes": "96*batch*seq*seq", "example_score_bytes": 100663296, "nodes_removed": 34,
               "nodes_added": 4, "products_of_softmax": 1},
    "miss": null, "other_misses": [], "match_seconds": 0.001})json");
  EXPECT_EQ(to_json(full_report())["sites"][0], expected);
}

TEST(ReportJson, SumsEffects) {
  Report report = full_report();
  report.sites[1].effect = Effect{Dim::symbol("seq") * 8, 2, 10, 1};
  report.sites[2].effect.reset();
  const json expected = json::parse(R"({
    "score_bytes": "96*batch*seq*seq + 8*seq", "example_sizes": {"batch": 1, "seq": 1024},
    "example_score_bytes": 100671488, "nodes_removed": 44, "nodes_added": 5})");
  EXPECT_EQ(to_json(report)["effect"], expected);
}

TEST(ReportJson, AnEffectBeyondAllBoundsHasNoExample) {
  Report report = full_report();
  Dim size = 1;
  for (int i = 0; i < 7; ++i) size = size * Dim::symbol("seq");
  report.sites[0].effect->score_bytes = size;
  EXPECT_EQ(to_json(report)["effect"]["example_score_bytes"], nullptr);
  EXPECT_THAT(to_text(report, false), HasSubstr("seq*seq bytes\n"));
}

TEST(ReportJson, HoldsAMissedSite) {
  const json site = to_json(full_report())["sites"][1];
  EXPECT_EQ(site["outcome"], "missed");
  EXPECT_EQ(site["form"], nullptr);
  EXPECT_EQ(site["scale"], nullptr);
  EXPECT_EQ(site["verification"], nullptr);
  EXPECT_EQ(site["miss"], json({{"id", "softmax.axis"},
                                {"node", "/layers.1/attn/Softmax"},
                                {"op", "Softmax"},
                                {"found", "axis -2, the queries"},
                                {"hint", "attn-opt explain --id softmax.axis"}}));
}

/// What a pattern of the user's found, with an id of its own.
OtherMiss own_miss() { return {"power_attention", "power.base", "powers", "Pow", "the base is 3", {"Div"}}; }

TEST(ReportJson, HoldsWhatOtherPatternsMissed) {
  Report report = full_report();
  report.sites[1].other_misses = {own_miss()};
  EXPECT_EQ(to_json(report)["sites"][1]["other_misses"],
            json::parse(R"([{"pattern": "power_attention", "id": "power.base", "node": "powers", "op": "Pow",
                             "found": "the base is 3", "hint": null, "peeled": ["Div"]}])"));
}

TEST(ReportJson, IsValidWhateverTheNumbersAndNames) {
  Report report = full_report();
  report.input = "bad \xff\xfe name\n";
  report.sites[0].scale = std::numeric_limits<double>::quiet_NaN();
  report.sites[0].softcap = -std::numeric_limits<double>::infinity();
  const json read = json::parse(to_json(report).dump());
  EXPECT_EQ(read["sites"][0]["scale"], "NaN");
  EXPECT_EQ(read["sites"][0]["softcap"], "-Infinity");
  EXPECT_EQ(read["sites"][2]["verification"]["algebra_difference"], "Infinity");
  EXPECT_THAT(read["input"].get<std::string>(), HasSubstr("name\n"));
}

TEST(ReportJson, AnUnwrittenOutputIsNull) {
  Report report = full_report();
  report.output.clear();
  EXPECT_EQ(to_json(report)["output"], nullptr);
}

TEST(ReportText, IsATable) {
  EXPECT_EQ(to_text(full_report(), false),
            "attention sites: 1 of 3 fused, 1 refused, 1 missed\n"
            "1 of 1 verified; 1 site assumes that scores are finite (explain says why, --strict refuses)\n"
            "score tensors no longer made in each run: 96*batch*seq*seq bytes; 101 MB where batch = 1, seq = 1024\n"
            "\n"
            "               before     after\n"
            "opset              17        24\n"
            "nodes             120        90\n"
            "  Attention         0         1\n"
            "  Softmax           3         2\n"
            "\n"
            "missed  main/If:else//layers.1/attn/Softmax\n"
            "        axis -2, the queries (Softmax) [softmax.axis]\n"
            "refused /layers.2/attn/Softmax\n"
            "        4d, 8 heads on 2, with past, failed (inf, 0.5 ulp): draw 3 (all keys masked): 0.3 off\n"
            "run: attn-opt explain in.onnx --node main/If:else//layers.1/attn/Softmax\n");
}

TEST(ReportText, ListsTheOperatorsThatChangedMost) {
  Report report = full_report();
  report.operators = {{"Add", 9, 8}, {"Attention", 0, 1}};
  for (char name = 'B'; name <= 'K'; ++name) report.operators.push_back({std::string(1, name), 20, 20 - (name - 'A') - 1});
  const std::string text = to_text(report, false);
  EXPECT_THAT(text, AllOf(HasSubstr("  Attention  "), HasSubstr("\n  E  "), HasSubstr("\n  K  "), HasSubstr("\n  4 more\n")));
  EXPECT_THAT(text, AllOf(Not(HasSubstr("\n  D  ")), Not(HasSubstr("\n  Add  "))));
  EXPECT_LT(text.find("\n  E  "), text.find("\n  K  ")) << "in their order";
  EXPECT_THAT(to_text(report, true), AllOf(HasSubstr("\n  B  "), Not(HasSubstr(" more\n")))) << "-v: all";
}

TEST(ReportText, NamesTheFirstFiveThatAreNotFused) {
  Report report = full_report();
  report.sites = {fused_site()};
  EXPECT_THAT(to_text(report, false), Not(HasSubstr("\nrun: ")));
  for (int i = 0; i < 7; ++i) {
    report.sites.push_back(missed_site());
    report.sites.back().name = "site" + std::to_string(i);
  }
  const std::string text = to_text(report, false);
  EXPECT_THAT(text, AllOf(HasSubstr("missed  main/If:else/site4\n"), Not(HasSubstr("site5")),
                          HasSubstr("\n2 more\nrun: attn-opt explain in.onnx --node ")));
  report.input.clear();
  EXPECT_THAT(to_text(report, false), Not(HasSubstr("\nrun: "))) << "a model in memory";
}

TEST(ReportText, WhatIsNotVerifiedIsNotCounted) {
  Report report = full_report();
  report.sites[0].verification.reset();
  report.sites[0].preconditions = {{"sizes-not-empty", false, ""}};
  EXPECT_THAT(to_text(report, false), HasSubstr("\n0 of 1 verified; 1 site assumes that no size is 0\n"));
  report.sites.clear();
  EXPECT_THAT(to_text(report, false), Not(HasSubstr("verified"))) << "nothing is fused";
}

TEST(ReportText, HasALineForEverySite) {
  const std::string text = to_text(full_report(), true);
  EXPECT_THAT(text, HasSubstr("fused   /layers.0/attn/Softmax               4d, 8 heads on 2, with past, "
                              "verified (3e-16, 0.5 ulp)\n"));
  EXPECT_THAT(text, HasSubstr("missed  main/If:else//layers.1/attn/Softmax"));
  EXPECT_THAT(text, HasSubstr("softmax.axis\n"));
  EXPECT_THAT(
      text,
      HasSubstr("at /layers.1/attn/Softmax (Softmax): axis -2, the queries\n        attn-opt explain --id softmax.axis\n"));
  EXPECT_THAT(text, HasSubstr("draw 3 (all keys masked): 0.3 off"));
}

TEST(ReportText, LongNamesHaveALineToThemselves) {
  Report report = full_report();
  for (SiteReport& site : report.sites) site.name = "/model/model/decoder/block.0/layer.0/SelfAttention/Softmax";
  const std::string text = to_text(report, true), name = report.sites[0].name + "\n";
  EXPECT_THAT(text, HasSubstr("fused   " + name + "        4d, 8 heads on 2, with past, verified (3e-16, 0.5 ulp)\n"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "missed  main/If:else/" + name +
          "        softmax.axis at /layers.1/attn/Softmax (Softmax): axis -2, the queries\n        attn-opt explain --id "));
  EXPECT_THAT(text, HasSubstr(name + "        4d, 8 heads on 2, with past, failed (inf, 0.5 ulp): draw 3 (all keys masked)"));
}

TEST(ReportText, ARefusalBeforeVerificationSaysWhy) {
  Report report;
  SiteReport site = missed_site();
  site.outcome = SiteReport::Outcome::kRefused;
  site.miss_id = "target.dtype";
  report.sites = {site};
  EXPECT_THAT(to_text(report, true), HasSubstr("refused main/If:else//layers.1/attn/Softmax  target.dtype\n"));
}

TEST(ReportText, StaysWithinAHundredColumnsButForNamesWhichAreWhole) {
  Report report = full_report();
  report.operators.push_back({std::string(200, 'x'), 1, 2});
  report.not_raised = {"'node' (Resize): " + std::string(80, 'a') + " " + std::string(80, 'b')};
  for (SiteReport& site : report.sites) {
    site.name = "/model" + std::string(150, 'n') + "/Softmax";
    site.miss_node = site.name;
    site.found = "a long explanation of what was found there, word after word after word, until the line is full";
  }
  const std::string& name = report.sites[0].name;
  EXPECT_LE(longest_line(to_text(report, true), name), 100u);
  EXPECT_THAT(to_text(report, true), AllOf(HasSubstr("fused   " + name + "\n"), Not(HasSubstr("n..."))));
  EXPECT_THAT(explain(report.sites[0]), testing::StartsWith(name + "  fused"));
}

TEST(ReportText, NamesCannotSteerATerminal) {
  Report report = full_report();
  report.sites[1].name = report.sites[1].found = "a\x1b[31mb";
  report.sites[1].miss_node = "c\x07";
  EXPECT_THAT(to_text(report, true) + explain(report.sites[1]), AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\x07"))));
}

TEST(Explain, SaysWhereAMissStopped) {
  EXPECT_EQ(explain(missed_site()),
            "main/If:else//layers.1/attn/Softmax  not fused  [softmax_attention]\n"
            "  peeled    Cast\n"
            "  stopped   at /layers.1/attn/Softmax (Softmax): axis -2, the queries\n"
            "  hint      attn-opt explain --id softmax.axis\n");
}

TEST(Explain, AnIdThatTheManualLacksHasNoHint) {
  SiteReport site = missed_site();
  site.miss_id = "power.scale";
  EXPECT_THAT(explain(site), AllOf(HasSubstr("  miss      power.scale\n"), Not(HasSubstr("misses.md"))));
  Report report;
  report.sites = {site};
  EXPECT_THAT(to_text(report, true), AllOf(HasSubstr("power.scale"), Not(HasSubstr("misses.md"))));
}

/// As a dynamo exporter names its node and its place.
SiteReport named_by_user(SiteReport site) {
  site.name = "node_softmax_5";
  site.module = "b.5";
  site.source_file = "src/model.py";
  site.source_line = 10;
  return site;
}

TEST(ReportJson, HoldsModuleAndSourceLine) {
  Report report;
  report.sites = {named_by_user(fused_site())};
  const json site = to_json(report)["sites"][0];
  EXPECT_EQ(site["module"], "b.5");
  EXPECT_EQ(site["source_file"], "src/model.py");
  EXPECT_EQ(site["source_line"], 10);
}

TEST(ReportText, SaysModuleAndSourceLineBeforeTheName) {
  Report report;
  report.sites = {named_by_user(fused_site())};
  EXPECT_THAT(to_text(report, true), HasSubstr("fused   b.5 (model.py:10)  node_softmax_5  4d, 8 heads"));
  EXPECT_THAT(explain(report.sites[0]), testing::StartsWith("b.5 (model.py:10)  node_softmax_5  fused  [softmax_attention]\n"));
  report.sites[0].source_file.clear();
  EXPECT_THAT(explain(report.sites[0]), testing::StartsWith("b.5  node_softmax_5  fused"));
  report.sites[0].name = "/b.5/Softmax";
  EXPECT_THAT(explain(report.sites[0]), testing::StartsWith("/b.5/Softmax  fused")) << "the name says it";
}

TEST(Explain, SaysWhatOtherPatternsMissed) {
  SiteReport site = missed_site();
  site.other_misses = {own_miss(), {"b", "score.product", "mm", "MatMul", "none", {}}};
  EXPECT_THAT(explain(site), HasSubstr("  hint      attn-opt explain --id softmax.axis\n"
                                       "  also      [power_attention] power.base at powers (Pow): the base is 3\n"
                                       "  also      [b] score.product at mm (MatMul): none\n"));
  Report report;
  report.sites = {site};
  EXPECT_THAT(to_text(report, true), HasSubstr("also [power_attention] power.base at powers (Pow): the base is 3\n"));
}

TEST(Explain, SaysNothingOfScoresWhereNoneAreSpared) {
  Report report = full_report();
  report.sites[0].effect->score_bytes = 0;
  EXPECT_THAT(explain(report.sites[0]), HasSubstr("  effect    nodes: 34 become 4\n"));
  EXPECT_THAT(to_text(report, true), Not(HasSubstr("no longer makes")));
}

TEST(Explain, SaysHowASiteIsFused) {
  EXPECT_EQ(explain(fused_site()),
            "/layers.0/attn/Softmax  fused  [softmax_attention]\n"
            "  peeled    Cast -> bias -> scale\n"
            "  form      4d, 8 heads on 2, with past, scale 0.125\n"
            "  assumed   scores-finite: nothing bounds Q K^T\n"
            "  proven    sizes-equal: both are seq\n"
            "  effect    96*batch*seq*seq bytes of scores a run; nodes: 34 become 4\n"
            "  verdict   verified (algebra 3e-16, 0.5 ulp, 12 draws)\n"
            "  explained rows differ only where rows-keep-a-key fails\n");
}

TEST(Explain, SaysHowMasksWereRead) {
  SiteReport site = fused_site();
  site.is_causal = true;
  site.mask_reading = "'triangle' keeps key j of query i if j <= i + past: is_causal";
  EXPECT_THAT(explain(site), HasSubstr("  form      4d, 8 heads on 2, with past, causal, scale 0.125\n"
                                       "  mask      " +
                                       site.mask_reading + "\n"));
}

TEST(Explain, SaysWhyASiteIsRefused) {
  EXPECT_THAT(explain(refused_site()), HasSubstr("  reason    draw 3 (all keys masked): 0.3 off\n"
                                                 "  hint      attn-opt explain --id verification.failed\n"));
  SiteReport unverified = fused_site();
  unverified.verification->verdict = Verdict::kUnverified;
  unverified.verification->reason = "there is no kernel";
  EXPECT_THAT(explain(unverified),
              HasSubstr("  reason    there is no kernel\n  hint      attn-opt explain --id verification.unverified\n"));
}

TEST(Explain, AFormulaThatIsWrongHasNoUlp) {
  SiteReport site = fused_site();
  site.outcome = SiteReport::Outcome::kRefused;
  site.verification = Verification{Verdict::kFailed, "y differs by 2", 2, 0, 1, 0.1, false, {}};
  EXPECT_THAT(explain(site), HasSubstr("  verdict   failed (algebra 2, 1 draw)\n"));
}

TEST(Explain, AnOperatorIsSaidToBeOnItsWay) {
  SiteReport site;
  site.name = "softmax";
  site.miss_id = "probabilities.operator";
  site.miss_node = "pw";
  site.miss_op = site.found = "Mul";
  EXPECT_THAT(explain(site), HasSubstr("  stopped   at pw (Mul): between the softmax and the product with V\n"));
  Report report;
  report.sites = {site};
  const std::string reason = " at 'pw' between the softmax and the product with V [probabilities.operator]\n";
  EXPECT_THAT(to_text(report, false), HasSubstr("        Mul" + reason));
  report.sites[0].found = "columns cut off";
  EXPECT_THAT(to_text(report, false), HasSubstr("columns cut off at 'pw' (Mul) [probabilities.operator]\n"));
}

}  // namespace
}  // namespace attn_opt
