// Files of rules: what is refused, and why.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "attn_opt/rules.h"

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
  EXPECT_THAT(refusal("# RULE r\n# WHERE mask: bool"), HasSubstr("'mask', which the pattern does not have"));
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
  EXPECT_THAT(with("s = MatMul (q, k) y = MatMul (s, v)"), HasSubstr("0 Attention nodes"));
  EXPECT_THAT(with("a = Attention (q, k, v) y = Gelu (a)"), HasSubstr("comes of Gelu"));
  EXPECT_THAT(with("a = Attention (q, k, v) y = Transpose (q)"), HasSubstr("only Transpose, Reshape"));
  EXPECT_THAT(with("y = Attention (q, k)"), HasSubstr("no Q, K and V"));
  EXPECT_THAT(with("a = Attention (q, k, v) y = Transpose ()"), HasSubstr("comes of Transpose"));
  EXPECT_THAT(refusal("# RULE r", kPattern, "<domain: \"rule\", opset_import: [\"\" : 24]>\nreplacement (q, k, w) => (y) {y = Attention (q, k, w)}\n"),
              HasSubstr("input 'w' is none of the pattern's"));
}

TEST(Rules, FoldersAreChecked) {
  const auto folder = std::filesystem::temp_directory_path() / "attn_opt_rules_test";
  std::filesystem::remove_all(folder);
  EXPECT_FALSE(load_rules(folder.string()));
  std::filesystem::create_directories(folder);
  const auto error = [&] {
    const auto rules = load_rules(folder.string());
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

TEST(Rules, ThoseThatShipAreRegistered) {
  std::vector<std::string> names;
  for (const auto& pattern : patterns()) names.emplace_back(pattern->name());
  EXPECT_THAT(names, ::testing::IsSupersetOf({"channels_first", "keys_first"}));
}

}  // namespace
}  // namespace attn_opt
