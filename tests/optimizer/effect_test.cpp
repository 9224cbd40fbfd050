// What a report says a rewrite spares.
#include "tests/optimizer/optimizer_case.h"

namespace attn_opt {
namespace {

TEST(Effect, CountsScoresAndProbabilities) {
  Model model = attention_in_text(attention_nodes());
  const Report report = optimized(model);
  ASSERT_TRUE(report.sites.at(0).effect.has_value());
  const Effect& effect = *report.sites[0].effect;
  EXPECT_EQ(effect.score_bytes, Dim(800)) << "the product and the softmax, float";
  EXPECT_EQ(effect.nodes_removed, 4);
  EXPECT_EQ(effect.nodes_added, 1);
}

TEST(Effect, DoesNotCountWhatIsStillMade) {
  Model model = attention_in_text(attention_nodes(), "", ", float[2,2,5,5] w");
  const Report report = optimized(model);
  ASSERT_TRUE(report.sites.at(0).effect.has_value());
  EXPECT_EQ(report.sites[0].effect->score_bytes, Dim(400)) << "the probabilities are an output";
}

TEST(Effect, IsThatOfFusedSitesOnly) {
  Model model = attention_in_text(attention_nodes("", "2"));
  const Report report = optimized(model);
  EXPECT_EQ(report.fused(), 0);
  EXPECT_FALSE(report.sites.at(0).effect.has_value());
}

}  // namespace
}  // namespace attn_opt
