#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/report/drawing/dot.h"
#include "src/report/drawing/drawings.h"
#include "src/report/drawing/placement.h"
#include "src/report/report_stream.h"
#include "tests/report/example_report.h"

namespace attn_opt {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Report two_alike() {
  Report report = full_report();
  SiteReport other = fused_site();
  other.name = other.before->nodes[0].name = "/layers.9/attn/Softmax";
  (*other.before->tensors[0].shape)[2] = "length";
  report.sites.push_back(other);
  return report;
}

Diagram before() { return diagram_of(to_json(full_report())["groups"][0]["before"]); }

std::string drawn_report(ReportFormat format, const json& report) {
  const auto stream = make_report_stream(format, ReportScope::kOne);
  std::string text = stream->begin();
  text += stream->add({"in.onnx", "", 0, "", 1.5, report});
  return text + stream->end();
}

TEST(SiteGroups, ThoseThatDifferInNamesAndSymbolsAloneAreOne) {
  const json report = to_json(two_alike());
  EXPECT_EQ(report["groups"].size(), 3u);
  EXPECT_EQ(report["groups"][0]["sites"], json({0, 3}));
  EXPECT_EQ(report["sites"][3]["group"], 0);
  EXPECT_EQ(report["sites"][3]["nodes_before"][0], "/layers.9/attn/Softmax");
}

TEST(SiteGroups, AnotherOperatorOrAnotherNumberIsAnotherGroup) {
  for (int kind = 0; kind < 3; ++kind) {
    Report report = two_alike();
    SiteReport& other = report.sites.back();
    if (kind == 0) other.before->nodes[1].op = "Gemm";
    if (kind == 1) other.before->tensors[1].number = 0.25;
    if (kind == 2) (*other.before->tensors[0].shape)[1] = "4";
    EXPECT_EQ(to_json(report)["groups"].size(), 4u) << kind;
  }
}

TEST(SiteGroups, TheManualSpeaksOfEachIdThatOccurs) {
  const json manual = to_json(full_report())["manual"];
  EXPECT_THAT(manual["misses"]["softmax.axis"]["remedy"].get<std::string>(), Not(::testing::IsEmpty()));
  EXPECT_TRUE(manual["misses"].contains("verification.failed"));
  EXPECT_THAT(manual["preconditions"]["sizes-equal"], "two sizes are taken for equal");
}

TEST(Diagram, NumbersStandInTheNodesThatReadThem) {
  const Diagram diagram = before();
  ASSERT_EQ(diagram.boxes.size(), 5u) << "two nodes, Q, V and the output";
  EXPECT_EQ(diagram.boxes[0].heading, "Softmax");
  EXPECT_THAT(diagram.boxes[0].lines, ElementsAre("/layers.0/attn/Softmax", "0.5, axis=-1"));
  EXPECT_EQ(diagram.boxes[2].role, "Q");
  ASSERT_EQ(diagram.arrows.size(), 4u);
  EXPECT_EQ(diagram.arrows[1].label, "[batch, 8, seq]");
}

TEST(Diagram, DomainsStandBelowTheOperator) {
  Report report = full_report();
  report.sites[0].before->nodes[0].op = "com.microsoft::DecoderMaskedMultiHeadAttention";
  const Diagram diagram = diagram_of(to_json(report)["groups"][0]["before"]);
  EXPECT_EQ(diagram.boxes[0].heading, "DecoderMaskedMultiHeadAttention");
  EXPECT_EQ(diagram.boxes[0].lines[0], "com.microsoft");
}

TEST(Diagram, LongNamesKeepTheirEnds) {
  Report report = full_report();
  report.sites[0].before->nodes[0].name = std::string(200, 'a') + "/\xC3\xA9\xC3\xA9\xC3\xA9/Softmax";
  const std::string line = diagram_of(to_json(report)["groups"][0]["before"]).boxes[0].lines[0];
  EXPECT_THAT(line, AllOf(::testing::StartsWith("…a"), ::testing::EndsWith("/\xC3\xA9\xC3\xA9\xC3\xA9/Softmax")));
}

TEST(Placement, BoxesLieBelowWhatTheyReadAndApart) {
  if (!can_place()) GTEST_SKIP() << "built without Graphviz";
  const Diagram diagram = before();
  const auto place = placed(diagram);
  ASSERT_TRUE(place.has_value());
  for (size_t i = 0; i < diagram.arrows.size(); ++i) {
    const Diagram::Arrow& arrow = diagram.arrows[i];
    EXPECT_LT(place->centres[static_cast<size_t>(arrow.from)].second, place->centres[static_cast<size_t>(arrow.to)].second);
    EXPECT_EQ(place->arrows[i].curve.size() % 3, 1u);
    EXPECT_EQ(place->arrows[i].label.has_value(), !arrow.label.empty());
    EXPECT_NEAR(place->arrows[i].curve.front().first, place->centres[static_cast<size_t>(arrow.from)].first,
                diagram.boxes[static_cast<size_t>(arrow.from)].width / 2 + 1)
        << "arrows are those of the diagram, in its order";
  }
}

TEST(Dot, QuotesWhatNamesHold) {
  const std::string text = drawn_report(ReportFormat::kDot, to_json(full_report()));
  EXPECT_THAT(text,
              AllOf(HasSubstr("digraph \"in.onnx\""), HasSubstr("</script>\\\"v\\\"&"), HasSubstr("Softmax\\n/layers.0")));
}

TEST(Mermaid, EscapesWhatNamesHold) {
  const std::string text = mermaid(before());
  EXPECT_THAT(text, AllOf(HasSubstr("flowchart TB\n"), HasSubstr("n0[\"Softmax<br/>"),
                          HasSubstr("#60;/script#62;#34;v#34;#38;"), Not(HasSubstr("</script>"))));
}

TEST(Html, NamesCannotEndTheScriptTheyStandIn) {
  const std::string page = drawn_report(ReportFormat::kHtml, to_json(full_report()));
  EXPECT_THAT(page, AllOf(HasSubstr("<!doctype html>"), HasSubstr("\\u003c/script>"), Not(HasSubstr("</script>\\\"v")),
                          ::testing::EndsWith("</html>\n")));
  EXPECT_THAT(page, AllOf(Not(HasSubstr(" src=")), Not(HasSubstr("https://"))));
}

TEST(Svg, IsOneElementWithEachDrawing) {
  const std::string picture = drawn_report(ReportFormat::kSvg, to_json(full_report()));
  EXPECT_THAT(picture, ::testing::StartsWith("<svg xmlns="));
  EXPECT_EQ(picture.find("without Graphviz") == std::string::npos, can_place());
}

}  // namespace
}  // namespace attn_opt
