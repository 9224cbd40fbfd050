// Cases that are written: explain --case-out and --dump-matches.
#include <chrono>
#include <map>

#include "src/cli/cases/case_runner.h"
#include "tests/cli/tool.h"

namespace attn_opt {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// Layers of attention with names and comments of their own; the scores of the last one pass through a Relu.
std::string named_model() {
  return R"(<ir_version: 8, opset_import: ["" : 17], producer_name: "secret_producer", doc_string: "secret_text",
 metadata_props: ["secret_key" : "secret_value"]>
secret_graph (float[secret_batch,secret_length,64] secret_input) => (float[secret_batch,secret_length,64] secret_output)
<float scale = {0.25}, int64[4] split = {0, 0, 4, 16}, int64[3] merged = {0, 0, 64}> {
  hidden = Relu (secret_input)
  longer = Sigmoid (hidden)
  secret_rows = Reshape (longer, split)
  q = Transpose <perm = [0, 2, 1, 3]> (secret_rows)
  k = Transpose <perm = [0, 2, 3, 1]> (secret_rows)
  scores = MatMul (q, k)
  scaled = Mul (scores, scale)
  p = Softmax <axis = -1> (scaled)
  y = MatMul (p, q)
  y_rows = Transpose <perm = [0, 2, 1, 3]> (y)
  y_flat = Reshape (y_rows, merged)
  second = Tanh (y_flat)
  second_rows = Reshape (second, split)
  second_q = Transpose <perm = [0, 2, 1, 3]> (second_rows)
  second_k = Transpose <perm = [0, 2, 3, 1]> (second_rows)
  second_scores = MatMul (second_q, second_k)
  second_positive = Relu (second_scores)
  secret_softmax = Softmax <axis = -1> (second_positive)
  second_y = MatMul (secret_softmax, second_q)
  second_turned = Transpose <perm = [0, 2, 1, 3]> (second_y)
  secret_output = Reshape (second_turned, merged)
}
)";
}

int lines_of_nodes(const std::string& text) {
  int count = 0;
  for (size_t at = text.find("\n   "); at != std::string::npos; at = text.find("\n   ", at + 1))
    count += text.compare(at, 6, "\n   <") != 0 && text.find(" = ", at) < text.find('\n', at + 1);
  return count;
}

TEST_F(ToolTest, CaseOutIsTheSmallestThatStillMisses) {
  write_file(file("in.onnxtxt"), named_model());
  const ToolResult result = run("explain in.onnxtxt --case-out out.onnxtxt");
  ASSERT_EQ(result.status, 0) << result.err;
  const std::string text = read_file(file("out.onnxtxt"));
  EXPECT_THAT(text, AllOf(HasSubstr("fused=0"), HasSubstr("miss=scores.operator"), HasSubstr("Relu")));
  EXPECT_THAT(text, AllOf(Not(HasSubstr("secret")), Not(HasSubstr("second")), Not(HasSubstr("64"))));
  EXPECT_LE(lines_of_nodes(text), 4) << text;
  EXPECT_EQ(run("test out.onnxtxt").status, 0) << text;
}

TEST_F(ToolTest, CaseOutIsDeterministic) {
  write_file(file("in.onnxtxt"), named_model());
  ASSERT_EQ(run("explain in.onnxtxt --case-out one.onnxtxt").status, 0);
  const std::string first = read_file(file("one.onnxtxt"));
  ASSERT_EQ(run("explain in.onnxtxt --case-out one.onnxtxt").status, 0);
  EXPECT_EQ(read_file(file("one.onnxtxt")), first);
}

TEST_F(ToolTest, CaseOutOfAFusedSite) {
  write_file(file("in.onnxtxt"), named_model());
  const ToolResult result = run("explain in.onnxtxt --node p --case-out out.onnxtxt");
  ASSERT_EQ(result.status, 0) << result.err;
  const std::string text = read_file(file("out.onnxtxt"));
  EXPECT_THAT(text, AllOf(HasSubstr("fused=1"), HasSubstr("scale=0.25"), Not(HasSubstr("secret"))));
  EXPECT_EQ(run("test out.onnxtxt").status, 0) << text;
}

/// No inference says that the bias is as long as the weights are wide: smaller sizes may make what is written invalid.
TEST_F(ToolTest, CaseOutOfAnOperatorOfOnnxRuntime) {
  std::filesystem::copy_file(ATTN_OPT_TESTDATA "/cases/contrib/attention_plain.onnxtxt", file("in.onnxtxt"));
  ASSERT_EQ(run("explain in.onnxtxt --case-out out.onnxtxt").status, 0);
  EXPECT_EQ(run("test out.onnxtxt").status, 0) << read_file(file("out.onnxtxt"));
}

TEST_F(ToolTest, CaseOutWithoutTimeSaysHowToGiveMore) {
  write_file(file("in.onnxtxt"), named_model());
  const ToolResult result = run("explain in.onnxtxt --case-out out.onnxtxt --case-seconds 0.000001");
  EXPECT_EQ(result.status, 3);
  EXPECT_THAT(result.err, AllOf(IsOneErrorLine(), HasSubstr("--case-seconds")));
}

/// What is found in time is a case, though not the smallest.
TEST_F(ToolTest, CaseOutIsWholeWhereTimeRunsOut) {
  std::string chain;
  for (int i = 0; i < 300; ++i) chain += "  s" + std::to_string(i + 1) + " = Sin (s" + std::to_string(i) + ")\n";
  std::string model = named_model();
  const std::string hidden = "  hidden = Relu (secret_input)\n";
  model.replace(model.find(hidden), hidden.size(), "  s0 = Relu (secret_input)\n" + chain + "  hidden = Identity (s300)\n");
  write_file(file("in.onnxtxt"), model);
  int written = 0;
  for (const char* seconds : {"0.02", "0.1", "0.5", "2", "0"}) {
    const ToolResult result = run(std::string("explain in.onnxtxt --case-out out.onnxtxt --case-seconds ") + seconds);
    if (result.status == 3) continue;
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_THAT(run_case(file("out.onnxtxt")).failures, IsEmpty()) << seconds;
    ++written;
  }
  EXPECT_GE(written, 1);
}

/// A number that Slice takes for "to the end" has no factors worth a search.
TEST_F(ToolTest, CaseOutOfHugeSizesIsQuick) {
  std::string model = named_model();
  const std::string hidden = "  hidden = Relu (secret_input)\n";
  model.replace(model.find(hidden), hidden.size(),
                "  zero = Constant <value = int64[1] {0}> ()\n  end = Constant <value = int64[1] {2147483647}> ()\n"
                "  axis = Constant <value = int64[1] {1}> ()\n  hidden = Slice (secret_input, zero, end, axis)\n");
  const std::string relu = "second_positive = Relu (second_scores)";
  model.replace(model.find(relu), relu.size(),
                "second_kept = Slice (second_scores, zero, end, axis)\n  second_positive = Relu (second_kept)");
  write_file(file("in.onnxtxt"), model);
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(run("explain in.onnxtxt --case-out out.onnxtxt").status, 0);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

TEST_F(ToolTest, CaseOutThatCannotBeWritten) {
  write_file(file("in.onnxtxt"), attention_model());
  const ToolResult result = run("explain in.onnxtxt --case-out no/such/folder/out.onnxtxt");
  EXPECT_EQ(result.status, 5);
  EXPECT_THAT(result.err, IsOneErrorLine());
}

/// Every negative case becomes a smaller one, or stays as large, with the same miss.
TEST_F(ToolTest, CaseOutOfEveryNegativeCase) {
  // What is not cut, and the reason that is given.
  const std::map<std::string, std::string> kUncut = {{"miss_probabilities_through_if", "bodies of control flow"},
                                                     {"miss_other_scores_in_a_branch", "bodies of control flow"},
                                                     {"miss_softmax_in_branches", "bodies of control flow"},
                                                     {"miss_softmax_in_loop", "bodies of control flow"},
                                                     {"product_in_both_branches", "bodies of control flow"},
                                                     {"miss_sequence_of_unknown_pieces", "type of 'pieces' is not known"},
                                                     {"miss_loop_changes_scores", "bodies of control flow"},
                                                     {"miss_loop_turns_scores", "bodies of control flow"},
                                                     {"miss_product_in_a_scan", "bodies of control flow"},
                                                     {"miss_gate_handed_to_a_body", "bodies of control flow"},
                                                     {"miss_keys_reversed_behind_branches", "bodies of control flow"}};
  const auto cases = find_cases({ATTN_OPT_TESTDATA "/cases/softmax_attention", ATTN_OPT_TESTDATA "/cases/attention_node"});
  ASSERT_TRUE(cases.has_value());
  int reduced = 0;
  for (const auto& path : *cases) {
    const auto one = read_case(path);
    ASSERT_TRUE(one.has_value());
    const bool is_plain = one->expect.fused == 0 && !one->expect.misses.empty() && one->options.emit.form == Form::kAuto &&
                          one->options.opset == OptimizeOptions().opset &&
                          one->options.emit.target == OptimizeOptions().emit.target && !one->options.strict &&
                          !one->options.exact && !one->options.assume && one->options.only.empty() &&
                          one->options.stop_after < 0;
    if (!is_plain) continue;
    const ToolResult result = run("explain '" + path.string() + "' --case-out out.onnxtxt");
    if (const auto uncut = kUncut.find(path.stem()); uncut != kUncut.end()) {
      EXPECT_THAT(result.err, HasSubstr(uncut->second)) << path;
      continue;
    }
    ASSERT_EQ(result.status, 0) << path << result.err;
    EXPECT_THAT(read_file(file("out.onnxtxt")), HasSubstr("miss=" + one->expect.misses.front())) << path;
    EXPECT_THAT(run_case(file("out.onnxtxt")).failures, IsEmpty()) << path;
    ++reduced;
  }
  EXPECT_GE(reduced, 40);
}

TEST_F(ToolTest, DumpMatchesWritesEachOnce) {
  std::string model = named_model();
  const std::string relu = "second_positive = Relu (second_scores)";
  model.replace(model.find(relu), relu.size(), "second_positive = Mul (second_scores, scale)");
  write_file(file("in.onnxtxt"), model);
  const ToolResult result = run("in.onnxtxt --dump-matches cases");
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(exists("cases/match_1.onnxtxt"));
  EXPECT_FALSE(exists("cases/match_2.onnxtxt"));
  EXPECT_THAT(read_file(file("cases/match_1.onnxtxt")),
              AllOf(HasSubstr("fused=1"), HasSubstr("verdict=verified"), HasSubstr("kv_heads=4"), Not(HasSubstr("secret"))));
  EXPECT_EQ(run("test cases").status, 0);
}

TEST_F(ToolTest, CasesNameTheirRulesFromWhereTheyStand) {
  std::filesystem::create_directories(file("my/rules"));
  for (const char* rule : {"odds_softmax", "fused_attention"})
    std::filesystem::copy_file(std::string(ATTN_OPT_TESTDATA "/cases/rules/acme/") + rule + ".rule",
                               file("my/rules/" + std::string(rule) + ".rule"));
  std::filesystem::copy_file(ATTN_OPT_TESTDATA "/cases/rules/odds.onnxtxt", file("in.onnxtxt"));
  const ToolResult result = run("in.onnxtxt --patterns my/rules --dump-matches cases/of/it");
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(read_file(file("cases/of/it/match_1.onnxtxt")), HasSubstr("--rules ../../../my/rules"));
  const ToolResult tested = run("test cases");
  EXPECT_EQ(tested.status, 0) << tested.out << tested.err;
}

TEST_F(ToolTest, DumpMatchesWithoutAny) {
  write_file(file("in.onnxtxt"), other_model());
  EXPECT_EQ(run("in.onnxtxt --dump-matches cases").status, 0);
  EXPECT_FALSE(exists("cases/match_1.onnxtxt"));
}

}  // namespace
}  // namespace attn_opt
