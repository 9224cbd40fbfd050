// Files of rules: what is refused, and why.
#include "attn_opt/rules.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

namespace attn_opt {
namespace {

using ::testing::HasSubstr;

constexpr const char* kPattern = R"(<domain: "rule", opset_import: ["" : 17]>
pattern (q, k, v) => (y) { s = MatMul (q, k) p = Softmax (s) y = MatMul (p, v) }
)";
constexpr const char* kReplacement = R"(<domain: "rule", opset_import: ["" : 24]>
replacement (q, k, v) => (y) { kt = Transpose <perm: ints = [0, 1, 3, 2]> (k) y = Attention <scale: float = 1.0> (q, kt, v) }
)";

std::string replacement(const std::string& body) {
  return "<domain: \"rule\", opset_import: [\"\" : 24]>\nreplacement (q, k, v) => (y) {" + body + "}\n";
}

/// What is wrong with a rule of these parts; empty if nothing.
std::string refusal(const std::string& header, const std::string& pattern = kPattern, const std::string& made = kReplacement) {
  const auto rule = parse_rule(header + "\n" + pattern + made, "r.rule");
  return rule ? "" : rule.error().message();
}

TEST(Rules, OneIsAPattern) {
  const auto rule = parse_rule(std::string("# RULE plain\n# ABOUT no scale\n") + kPattern + kReplacement, "r.rule");
  ASSERT_TRUE(rule) << rule.error().message();
  EXPECT_EQ((*rule)->name(), "plain");
  EXPECT_EQ((*rule)->summary(), "no scale");
}

TEST(Rules, HeadersAreChecked) {
  EXPECT_EQ(refusal("# RULE plain\n# WHERE q: constant float|float16 [B, 8, ?, D_v]\n# ASSUME rows-keep-a-key"), "");
  EXPECT_THAT(refusal("# ABOUT nothing"), HasSubstr("how the rule is called"));
  EXPECT_THAT(refusal("# RULE two words"), HasSubstr("how the rule is called"));
  EXPECT_THAT(refusal("# RULE r\n# WHERE q: floatt"), HasSubstr("r.rule:2: 'floatt' is no type"));
  EXPECT_THAT(refusal("# RULE r\n# WHERE q float"), HasSubstr("is no WHERE"));
  EXPECT_THAT(refusal("# RULE r\n# WHERE q: [B, H"), HasSubstr("no ']'"));
  EXPECT_THAT(refusal("# RULE r\n# WHERE q: [B, 2*H]"), HasSubstr("'2*H' is no size"));
  EXPECT_THAT(refusal("# RULE r\n# WHERE mask: bool"),
              HasSubstr("r.rule:2: WHERE names 'mask', which the pattern does not have; there are k, p, q, s, v, y"));
  EXPECT_THAT(refusal("# RULE r\n# ASSUME luck"), HasSubstr("no precondition 'luck'"));
}

TEST(Rules, PatternsAreChecked) {
  const auto pattern = [](const std::string& signature, const std::string& body) {
    return refusal("# RULE r", "<domain: \"rule\", opset_import: [\"\" : 17]>\npattern " + signature + " {" + body + "}\n");
  };
  EXPECT_THAT(pattern("(q, k, v, mask) => (y)", "s = MatMul (q, k) p = Softmax (s) y = MatMul (p, v)"),
              HasSubstr("'mask' of the pattern does not lead to its output"));
  EXPECT_THAT(pattern("(q, k, v) => (y)", "s = MatMul (q, t) y = MatMul (s, v)"), HasSubstr("'t' of 'pattern' is read before"));
  EXPECT_THAT(pattern("(q, k, v) => (y, q)", "s = MatMul (q, k) y = MatMul (s, v)"), HasSubstr("makes its output 'q'"));
  EXPECT_THAT(refusal("# RULE r", "", kReplacement), HasSubstr("two functions"));
  EXPECT_THAT(refusal("# RULE r", "pattern (", kReplacement), HasSubstr("r.rule: line"));
}

TEST(Rules, ReplacementsAreChecked) {
  const auto with = [](const std::string& body) { return refusal("# RULE r", kPattern, replacement(body)); };
  EXPECT_THAT(with("s = MatMul (q, k) y = MatMul (s, v)"), HasSubstr("no Attention node"));
  EXPECT_THAT(with("a = Attention (q, k, v) y = Gelu (a)"), HasSubstr("comes of Gelu"));
  EXPECT_THAT(with("a = Attention (q, k, v) y = Transpose (q)"), HasSubstr("only Transpose, Reshape"));
  EXPECT_THAT(with("y = Attention (q, k)"), HasSubstr("no Q, K and V"));
  EXPECT_THAT(with("a = Attention (q, k, v) y = Transpose ()"), HasSubstr("comes of Transpose"));
  EXPECT_THAT(
      refusal("# RULE r", kPattern,
              "<domain: \"rule\", opset_import: [\"\" : 24]>\nreplacement (q, k, w) => (y) {y = Attention (q, k, w)}\n"),
      HasSubstr("input 'w' is none of the pattern's"));
}

TEST(Rules, KeysOfTheHeaderAreChecked) {
  EXPECT_THAT(refusal("# RULE r\n# WEHRE q: float"),
              HasSubstr("r.rule:2: 'WEHRE' is no key of a rule's header; did you mean 'WHERE'?"));
  EXPECT_THAT(refusal("# RULE r\n# Where q: float"),
              HasSubstr("r.rule:2: 'Where' is no key of a rule's header; did you mean 'WHERE'?"));
  EXPECT_THAT(refusal("# RULE r\n# assume scores-finite"), HasSubstr("did you mean 'ASSUME'?"));
  EXPECT_THAT(refusal("# RULE r\n# VERIFY off"), HasSubstr("there are RULE, ABOUT, WHERE, ASSUME"));
  EXPECT_EQ(refusal("# RULE r\n#\n# before: K and V\n# Where it is from\n# ---- QK"), "");
}

/// What is wrong with a rule whose pattern has BODY behind its first line.
std::string refused_body(const std::string& body, const std::string& imports = "\"\" : 17") {
  return refusal("# RULE r",
                 "<domain: \"rule\", opset_import: [" + imports + "]>\npattern (q, k, v) => (y) {\n" + body + "}\n");
}

TEST(Rules, OperatorsAreThoseOfTheOpset) {
  EXPECT_EQ(refused_body("s = MatMul (q, k)\np = Softmax <axis: int = -1> (s)\ny = MatMul (p, v)\n"), "");
  EXPECT_THAT(refused_body("s = MatMul (q, k)\np = # = Softmax\n  Sofmax (s)\ny = MatMul (p, v)\n"),
              ::testing::StartsWith("r.rule:6: there is no operator 'Sofmax' in opset 17; did you mean 'Softmax'?"));
  EXPECT_THAT(refused_body("s = MatMul (q, k)\np = Gelu (s)\ny = MatMul (p, v)\n"),
              HasSubstr("r.rule:5: there is no operator 'Gelu' in opset 17; it came with opset 20"));
  EXPECT_THAT(refused_body("s = MatMul (q, k)\np = Softmax <axes: int = -1> (s)\ny = MatMul (p, v)\n"),
              HasSubstr("r.rule:5: Softmax has no attribute 'axes'; did you mean 'axis'?"));
  EXPECT_THAT(refused_body("s = MatMul (q, k)\np = Softmax <axis: float = 1.0> (s)\ny = MatMul (p, v)\n"),
              HasSubstr("r.rule:5: the attribute 'axis' of Softmax is given as FLOAT; it is INT"));
  EXPECT_THAT(refused_body("s = MatMul (q, k)\np = Softmax (s, s)\ny = MatMul (p, v)\n"),
              HasSubstr("r.rule:5: Softmax is given 2 inputs; it takes one: input"));
  EXPECT_THAT(refused_body("y = Zzzzzzzzzzzz (q, k, v)\n"), HasSubstr("written with its domain"));
  EXPECT_THAT(refused_body("y = MatMul (q, k, v)\n", "\"\" : 99"), HasSubstr("r.rule:4: MatMul: there is no opset 99"));
  EXPECT_THAT(refusal("# RULE r", kPattern, replacement("\n\ny = Attention <scales: float = 1.0> (q, k, v)")),
              HasSubstr("r.rule:7: Attention has no attribute 'scales'; did you mean 'scale'?"));
  EXPECT_THAT(refusal("# RULE r", replacement("y = Attenion (q, k, v)"), kPattern), HasSubstr("Attention"));
}

TEST(Rules, ParametersAreThoseOfThePattern) {
  const auto with = [](const std::string& parameter, const std::string& used, const std::string& made) {
    return refusal("# RULE r\n# WHERE q: [B, heads, L, D]",
                   "<domain: \"rule\", opset_import: [\"\" : 17]>\npattern <" + parameter +
                       "> (q, k, v) => (y) {\n"
                       "s = MatMul (q, k) p = Softmax <axis: int = @" +
                       used + "> (s) y = MatMul (p, v) }\n",
                   replacement("y = Attention <q_num_heads: int = @" + made + "> (q, k, v)"));
  };
  EXPECT_EQ(with("axis", "axis", "heads"), "");
  EXPECT_EQ(with("axis: int = -1", "axis", "axis"), "");
  EXPECT_THAT(with("axis", "axes", "axis"),
              HasSubstr("r.rule:5: '@axes' is no parameter of the pattern, nor a size of a WHERE line; did you mean 'axis'?"));
  EXPECT_THAT(with("axis", "heads", "axis"), HasSubstr("'@heads' is no parameter"));
  EXPECT_THAT(
      with("axis", "axis", "haeds"),
      HasSubstr("r.rule:7: '@haeds' is no parameter of the pattern, nor a size of a WHERE line; did you mean 'heads'?"));
}

TEST(Rules, OtherDomainsAreFreeButNamed) {
  const std::string body = "s = my.Scores <anything: int = 1> (q, k, v)\ny = ai.onnx.ml.Scaler (s)\n";
  EXPECT_EQ(refused_body(body, "\"ai.onnx\" : 17, \"my\" : 3, \"ai.onnx.ml\" : 1"), "");
  EXPECT_THAT(refused_body(body, "\"\" : 17, \"ai.onnx.ml\" : 1"),
              HasSubstr("r.rule:4: Scores is of 'my', which opset_import of 'pattern' does not name"));
  EXPECT_THAT(refused_body("y = ai.onnx.ml.Scalr (q, k, v)\n", "\"ai.onnx.ml\" : 1"),
              HasSubstr("in opset 1 of ai.onnx.ml; did you mean 'Scaler'?"));
}

TEST(Rules, FoldersAreChecked) {
  const auto folder = std::filesystem::temp_directory_path() / "attn_opt_rules_test";
  std::filesystem::remove_all(folder);
  EXPECT_FALSE(load_rules({folder.string()}));
  std::filesystem::create_directories(folder);
  const auto error = [&] {
    const auto rules = load_rules({folder.string()});
    return rules ? std::string() : rules.error().message();
  };
  EXPECT_THAT(error(), HasSubstr("holds no rule"));
  std::ofstream(folder / "a.rule") << "# RULE mine\n" << kPattern << kReplacement;
  EXPECT_EQ(error(), "");
  std::ofstream(folder / "b.rule") << "# RULE mine\n" << kPattern << kReplacement;
  EXPECT_THAT(error(), HasSubstr("another pattern 'mine'"));
  std::ofstream(folder / "b.rule") << "# RULE softmax_attention\n" << kPattern << kReplacement;
  EXPECT_THAT(error(), HasSubstr("another pattern 'softmax_attention'"));
  std::filesystem::remove_all(folder);
}

TEST(Rules, ComeFolderAfterFolder) {
  const auto top = std::filesystem::temp_directory_path() / "attn_opt_rule_folders_test";
  std::filesystem::remove_all(top);
  const auto write = [&](const std::string& file, const std::string& name) {
    std::filesystem::create_directories((top / file).parent_path());
    std::ofstream(top / file) << "# RULE " + name + "\n" << kPattern << kReplacement;
  };
  write("b/2.rule", "b2");
  write("b/1.rule", "b1");
  write("a/1.rule", "a1");
  const auto names = [&](const std::vector<std::string>& folders) {
    std::vector<std::string> paths, found;
    for (const std::string& folder : folders) paths.push_back((top / folder).string());
    const auto rules = load_rules(paths);
    if (!rules) return std::vector{rules.error().message()};
    for (const auto& rule : rules->patterns) found.emplace_back(rule->name());
    return found;
  };
  EXPECT_THAT(names({"b", "a"}), ::testing::ElementsAre("b1", "b2", "a1"));
  EXPECT_THAT(names({"a", "b", "a/../a"}), ::testing::ElementsAre("a1", "b1", "b2")) << "a folder is read once";
  EXPECT_THAT(names({}), ::testing::IsEmpty());
  write("c/1.rule", "a1");
  EXPECT_THAT(names({"a", "c"}), ::testing::ElementsAre(HasSubstr("another pattern 'a1'")));
  std::filesystem::remove_all(top);
}

TEST(Rules, WithoutAnAttentionNodeTheyAreRewrites) {
  const std::string pattern = "<domain: \"rule\", opset_import: [\"\" : 18]> pattern (x) => (y) { n = Neg (x) y = Relu (n) }\n";
  const std::string made = "<domain: \"rule\", opset_import: [\"\" : 24]> replacement (x) => (y) { y = Relu (x) }\n";
  const auto rewrite = parse_rewrite("# RULE r\n# ABOUT about\n" + pattern + made, "r.rule");
  ASSERT_TRUE(rewrite.has_value()) << rewrite.error().message();
  EXPECT_EQ((*rewrite)->name(), "r");
  EXPECT_EQ((*rewrite)->summary(), "about");
  const auto assumed = parse_rewrite("# RULE r\n# ASSUME scores-finite\n" + pattern + made, "r.rule");
  ASSERT_FALSE(assumed.has_value());
  EXPECT_THAT(assumed.error().message(), HasSubstr("ASSUME"));
  EXPECT_FALSE(parse_rule("# RULE r\n" + pattern + made, "r.rule").has_value());
}

}  // namespace
}  // namespace attn_opt
