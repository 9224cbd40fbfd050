// Every pattern regression case in testdata/cases.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>

#include "src/cli/cases/case_runner.h"

namespace attn_opt {
namespace {

std::vector<std::filesystem::path> all_cases() {
  const auto cases = find_cases({ATTN_OPT_TESTDATA "/cases"});
  return cases ? *cases : std::vector<std::filesystem::path>{};
}

/// "softmax_attention_plain" for .../cases/softmax_attention/plain.onnxtxt.
std::string test_name(const ::testing::TestParamInfo<std::filesystem::path>& info) {
  std::string name = info.param.lexically_relative(ATTN_OPT_TESTDATA "/cases").replace_extension().string();
  std::ranges::replace_if(name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

class Cases : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(Cases, Pass) {
  for (const std::string& failure : run_case(GetParam()).failures) ADD_FAILURE() << failure;
}

INSTANTIATE_TEST_SUITE_P(Testdata, Cases, ::testing::ValuesIn(all_cases()), test_name);

}  // namespace
}  // namespace attn_opt
