// The rewrite of docs/rewrites.md: it stands here as it stands there, and does what the text says.
#include <filesystem>
#include <fstream>
#include <iterator>

#include "attn_opt/matcher.h"
#include "tests/optimizer/optimizer_case.h"

namespace attn_opt {
namespace {

class NegatedRelu : public Rewrite {
 public:
  std::string_view name() const override { return "negated_relu"; }
  std::string_view summary() const override { return "Relu(-x) = -min(x, 0)"; }
  bool is_anchor(const Node& node) const override { return node.is("Relu"); }

  Matched<RewriteMatch> match(const Node& node, RewriteContext& context) const override {
    Value* x = nullptr;
    ATTN_OPT_DONE(fits(op("Relu", {op("Neg", {any(&x)})}), *node.outputs[0], context.facts, std::string(kNoMatch)));
    RewriteMatch match;
    match.values = {{"x", x}, {"y", node.outputs[0]}};
    match.numbers["type"] = context.facts.type(*x);
    return match;
  }

  Matched<std::vector<Replacement>> apply(const RewriteMatch& match, GraphBuilder& build) const override {
    const auto type = static_cast<DataType>(match.number("type"));
    Value* least = build.node("Min", {match.value("x"), build.scalar(0, type)});
    return std::vector<Replacement>{{match.value("y"), build.node("Neg", {least})}};
  }
};

std::string text_of(const std::filesystem::path& path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// The block of C++ in the manual that has WORDS.
std::string block_with(const std::string& words) {
  const std::string manual = text_of(std::filesystem::path(ATTN_OPT_TESTDATA) / "../docs/rewrites.md"), fence = "```cpp\n";
  for (size_t at = manual.find(fence); at != std::string::npos; at = manual.find(fence, at + 1)) {
    const size_t begin = at + fence.size();
    const std::string block = manual.substr(begin, manual.find("```", begin) - begin);
    if (block.find(words) != std::string::npos) return block;
  }
  return "no block with " + words;
}

TEST(RewritesManual, ItsRewriteIsThisOne) {
  const std::string block = block_with("class NegatedRelu");
  EXPECT_THAT(text_of(__FILE__), ::testing::HasSubstr(block));
  EXPECT_THAT(text_of(std::filesystem::path(ATTN_OPT_TESTDATA) / "../examples/rewrite/rewrite.cpp"),
              ::testing::HasSubstr(block));
}

bool has_one_reader(const Node& node) { return node.outputs[0]->uses.size() == 1 && !node.outputs[0]->is_output; }

TEST(RewritesManual, ItsTestOfReadersTellsThemApart) {
  const std::string block = block_with("has_one_reader");
  EXPECT_THAT(text_of(__FILE__), ::testing::HasSubstr(block.substr(0, block.find("\n\n"))));
  Value* x = nullptr;
  const Matcher alone = where(op("Clip", {any(&x), number_is(0), number_is(6)}), has_one_reader);
  const std::string clip =
      "zero = Constant <value_float = 0.0> () six = Constant <value_float = 6.0> () c = Clip (x, zero, six) ";
  for (const auto& [rest, is_alone] : {std::pair("(float[4] x) => (float[4] y) {@ y = Relu (c) }", true),
                                       {"(float[4] x) => (float[4] y, float[4] c) {@ y = Relu (c) }", false},
                                       {"(float[4] x) => (float[4] y) {@ r = Relu (c) y = Add (r, c) }", false}}) {
    std::string text = rest;
    Model model = in_memory(model_of_graph(text.replace(text.find('@'), 1, clip)));
    const auto view = ModelGraph::create(model.proto);
    ASSERT_TRUE(view) << rest;
    Facts facts(**view, *model.tensors);
    EXPECT_EQ(alone(*(*view)->main().find("c"), facts), is_alone) << rest;
  }
}

TEST(RewritesManual, ItsRewriteIsApplied) {
  Model model = in_memory(model_of_graph("(float[b, 4] x) => (float[b, 4] y) { n = Neg (x) y = Relu (n) }"));
  OptimizeOptions options;
  options.rewrites = {std::make_shared<NegatedRelu>()};
  const Report report = optimized(model, options);
  ASSERT_EQ(report.rewritten(), 1);
  EXPECT_EQ(report.rewrites[0].verification->verdict, Verdict::kVerified);
  EXPECT_EQ(count_of(model.proto, "Min"), 1);
}

TEST(RewritesManual, ItsConstantHasTheTypeOfTheModel) {
  Model model = in_memory(model_of_graph("(float16[b, 4] x) => (float16[b, 4] y) { n = Neg (x) y = Relu (n) }"));
  OptimizeOptions options;
  options.rewrites = {std::make_shared<NegatedRelu>()};
  EXPECT_EQ(optimized(model, options).rewritten(), 1);
}

}  // namespace
}  // namespace attn_opt
