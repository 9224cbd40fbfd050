// What cannot be run is unverified and says why.
#include <gmock/gmock.h>

#include "tests/verify/site_fixture.h"

namespace attn_opt {
namespace {

using testing::HasSubstr;

void expect_unverified(const Verification& result, const std::string& reason) {
  EXPECT_EQ(result.verdict, Verdict::kUnverified);
  EXPECT_THAT(result.reason, HasSubstr(reason));
}

TEST(VerifierLimits, UnsupportedOperator) {
  AttentionModel model;
  std::string text = AttentionModel{.scores = "  scores = foo.Bar(product)\n"}.text();
  text.replace(text.find("\"\" : 18"), 7, "\"\" : 18, \"foo\" : 1");
  SiteFixture site(text);
  expect_unverified(site.verify(site.attention({"q", "k", "v"})), "foo::Bar");
}

TEST(VerifierLimits, UnknownRank) {
  std::string text = AttentionModel{.inputs = ", float[N] n"}.text();
  text.replace(text.find("float[N] n"), 10, "float[] n, int64[R] to");
  text.replace(text.find("  kt ="), 0, "  n2 = Reshape(n, to)\n");
  SiteFixture site(text);
  const auto emission = site.attention([&](GraphBuilder& build) {
    return std::vector<Value*>{site.value("q"), site.value("k"), site.value("v"), site.value("n2")};
  });
  expect_unverified(site.verify(emission), "rank is not known");
}

TEST(VerifierLimits, Memory) {
  SiteFixture site(AttentionModel{});
  VerifyOptions options;
  options.memory_limit = 64;
  expect_unverified(site.verify(site.attention({"q", "k", "v"}), options), "memory limit");
}

TEST(VerifierLimits, Time) {
  SiteFixture site(AttentionModel{});
  VerifyOptions options;
  options.time_limit = std::chrono::milliseconds(0);
  expect_unverified(site.verify(site.attention({"q", "k", "v"}), options), "time");
}

}  // namespace
}  // namespace attn_opt
