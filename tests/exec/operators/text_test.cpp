#include "tests/exec/models.h"

namespace attn_opt::testing {
namespace {

using ::testing::ElementsAre;

Tensor strings(const std::vector<std::string>& values) {
  return Tensor::of<std::string>({static_cast<int64_t>(values.size())}, values);
}

std::vector<std::string> texts(const Expected<std::vector<Tensor>>& result) {
  EXPECT_TRUE(result) << result.error().message();
  return result ? values<std::string>((*result)[0]) : std::vector<std::string>();
}

TEST(StringSplit, TakesWhiteSpaceOfAnyScript) {
  const auto result = run_text("y, n = StringSplit(x)", {strings({" a\t\nb\u3000\u00a0c ", "", " \u2003"})});
  EXPECT_THAT(texts(result), ElementsAre("a", "b", "c", "", "", "", "", "", ""));
  EXPECT_THAT(values<int64_t>((*result)[1]), ElementsAre(3, 0, 0));
}

TEST(StringSplit, TrimsWhatIsLeftAfterTheLastSplit) {
  const Tensor x = strings({"  a  b c  "});
  EXPECT_THAT(texts(run_text("y, n = StringSplit<maxsplit = 1>(x)", {x})), ElementsAre("a", "b c"));
  EXPECT_THAT(texts(run_text("y, n = StringSplit<maxsplit = 0>(x)", {x})), ElementsAre("a  b c"));
}

TEST(StringSplit, GivesEmptyStringsBetweenDelimiters) {
  const auto result = run_text("y, n = StringSplit<delimiter = \",\">(x)", {strings({"a,,b", "", ","})});
  EXPECT_THAT(texts(result), ElementsAre("a", "", "b", "", "", "", "", "", ""));
  EXPECT_THAT(values<int64_t>((*result)[1]), ElementsAre(3, 1, 2));
}

TEST(StringSplit, TakesBytesThatAreNotUtf8ForLetters) {
  EXPECT_THAT(texts(run_text("y, n = StringSplit(x)", {strings({"\xff\xc0 \xe3\x80"})})), ElementsAre("\xff\xc0", "\xe3\x80"));
}

TEST(StringConcat, ChecksTheSizeBeforeItCopies) {
  ExecutorOptions options;
  options.memory_limit = 1 << 20;
  const Tensor row = Tensor::of<std::string>({1, 64}, std::vector<std::string>(64, std::string(1000, 'x')));
  const Tensor column = Tensor::of<std::string>({64, 1}, std::vector<std::string>(64, std::string(1000, 'y')));
  expect_error(run_text("z = StringConcat(x, y)", {row, column}, 20, options), ErrorCode::kLimit, "memory limit");
  expect_error(run_text("z = StringConcat(x, y)", {row, Tensor::scalar(1.0f)}), ErrorCode::kInvalidInput, "float32");
}

TEST(StringNormalizer, FoldsCaseBeyondAscii) {
  const Tensor x = strings({"Ärger", "STOP", "straße É", ""});
  EXPECT_THAT(texts(run_text("y = StringNormalizer<case_change_action = \"UPPER\", stopwords = [\"Stop\"]>(x)", {x}, 10)),
              ElementsAre("ÄRGER", "STRAßE É", ""));
  EXPECT_THAT(texts(run_text("y = StringNormalizer<stopwords = [\"ärger\"]>(x)", {x}, 10)),
              ElementsAre("STOP", "straße É", ""));
  EXPECT_THAT(texts(run_text("y = StringNormalizer<stopwords = [\"ärger\"], is_case_sensitive = 1>(x)", {x}, 10)),
              ElementsAre("Ärger", "STOP", "straße É", ""));
}

TEST(StringNormalizer, KeepsOneEmptyStringWhereAllWordsStop) {
  const auto result =
      run_text("y = StringNormalizer<stopwords = [\"a\"]>(x)", {Tensor::of<std::string>({1, 2}, {"a", "A"})}, 10);
  EXPECT_THAT(texts(result), ElementsAre(""));
  EXPECT_EQ((*result)[0].dims(), (Dims{1, 1}));
}

TEST(StringNormalizer, RefusesWhatItCannotFold) {
  const std::string lower = "y = StringNormalizer<case_change_action = \"LOWER\"";
  expect_error(run_text(lower + ">(x)", {strings({"\xff"})}, 10), ErrorCode::kInvalidInput, "UTF-8");
  expect_error(run_text(lower + ", locale = \"tr_TR\">(x)", {strings({"I"})}, 10), ErrorCode::kUnsupported, "tr_TR");
  expect_error(run_text(lower + ">(x)", {Tensor::of<std::string>({2, 1}, {"a", "b"})}, 10), ErrorCode::kInvalidInput, "[2, 1]");
}

Expected<std::vector<Tensor>> matches(const std::string& pattern, const std::vector<std::string>& given) {
  onnx::NodeProto node = parse_node("y = RegexFullMatch<pattern = \"\">(x)");
  node.mutable_attribute(0)->set_s(pattern);
  return run_node(node, std::vector{strings(given)}, {{"", 20}});
}

TEST(RegexFullMatch, TakesTimeInProportionToTheText) {
  if (const auto probe = matches("a", {"a"}); !probe) GTEST_SKIP() << probe.error().message();
  const auto result = matches("(a*)*(a|aa)+b", {std::string(20000, 'a'), "aab"});
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_THAT(values<bool>((*result)[0]), ElementsAre(false, true));
  EXPECT_THAT(values<bool>((*matches("a.?b", {"a\nb", "äb", "aäb"}))[0]), ElementsAre(false, false, true));
}

TEST(RegexFullMatch, RefusesPatternsThatAreNoneOrTooLarge) {
  if (const auto probe = matches("a", {"a"}); !probe) GTEST_SKIP() << probe.error().message();
  expect_error(matches("(", {"a"}), ErrorCode::kInvalidInput, "missing )");
  expect_error(matches("((a{100}){100}){100}", {"a"}), ErrorCode::kInvalidInput, "pattern");
  expect_error(matches(std::string(100000, '('), {"a"}), ErrorCode::kInvalidInput, "pattern");
}

const char* const kPool =
    "ngram_counts = [0, 3], ngram_indexes = [2, 0, 1, 4], pool_int64s = [5, 6, 7, 5, 6], max_skip_count = ";

TEST(TfIdfVectorizer, WeighsByThePlaceInThePool) {
  const Tensor x = Tensor::of<int64_t>({6}, {5, 6, 7, 5, 6, 5});
  const std::string rest = "0, min_gram_length = 1, max_gram_length = 2, weights = [10.0, 20.0, 30.0, 40.0]>(x)";
  const std::string node = std::string("y = TfIdfVectorizer<") + kPool + rest.substr(0, rest.size() - 4);
  const auto weighed = [&](const std::string& mode) {
    const auto result = run_text(node + ", mode = \"" + mode + "\">(x)", {x}, 9);
    EXPECT_TRUE(result) << result.error().message();
    return result ? values<float>((*result)[0]) : std::vector<float>();
  };
  EXPECT_THAT(weighed("TF"), ElementsAre(2, 1, 3, 0, 2));
  EXPECT_THAT(weighed("IDF"), ElementsAre(20, 30, 10, 0, 40));
  EXPECT_THAT(weighed("TFIDF"), ElementsAre(40, 30, 30, 0, 80));
}

TEST(TfIdfVectorizer, TakesAnyNumberOfSkipsAndNoItems) {
  const std::string rest = "9223372036854775807, min_gram_length = 2, max_gram_length = 2, mode = \"TF\">(x)";
  const std::string node = std::string("y = TfIdfVectorizer<") + kPool + rest;
  const auto far = run_text(node, {Tensor::of<int32_t>({4}, {5, 0, 0, 6})}, 9);
  ASSERT_TRUE(far) << far.error().message();
  EXPECT_THAT(values<float>((*far)[0]), ElementsAre(0, 0, 0, 0, 1));
  const auto nothing = run_text(node, {Tensor(onnx::TensorProto::INT32, {2, 0})}, 9);
  ASSERT_TRUE(nothing) << nothing.error().message();
  EXPECT_EQ((*nothing)[0].dims(), (Dims{2, 5}));
}

TEST(TfIdfVectorizer, RefusesPoolsThatDoNotFit) {
  const auto run = [](const std::string& counts, const std::string& indexes) {
    return run_text(
        "y = TfIdfVectorizer<mode = \"TF\", max_skip_count = 0, min_gram_length = 1, max_gram_length = 2, "
        "pool_int64s = [5, 6, 7], ngram_counts = [" +
            counts + "], ngram_indexes = [" + indexes + "]>(x)",
        {Tensor::of<int64_t>({1}, {5})}, 9);
  };
  expect_error(run("0, 4", "0, 1, 2"), ErrorCode::kInvalidInput, "do not fit the pool");
  expect_error(run("0, 2", "0, 1, 2"), ErrorCode::kInvalidInput, "do not fit the pool");
  expect_error(run("0", "0, 1"), ErrorCode::kInvalidInput, "fewer");
  expect_error(run("0", "0, 1, -1"), ErrorCode::kInvalidInput, "out of range");
  expect_error(run("0", "0, 1, 1099511627776"), ErrorCode::kLimit, "memory limit");
}

}  // namespace
}  // namespace attn_opt::testing
