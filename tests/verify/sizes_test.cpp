// The numbers that symbols get.
#include "src/verify/sizes.h"

#include <gmock/gmock.h>

#include "src/verify/site_models.h"
#include "tests/verify/site_fixture.h"

namespace attn_opt {
namespace {

using testing::ElementsAre;

/// The numbers of the batch that are tried whatever others show, with constants that are RENUMBERED or not.
std::vector<int64_t> batches(SiteFixture& site, bool renumbered = false) {
  site.sdpa = site.plain_sdpa();
  const Emission emission = site.attention({"q", "k", "v"});
  const auto cut = cut_site(emission, site.sdpa, {site.facts(), inline_tensors(), ReadNodes(nullptr)});
  EXPECT_TRUE(cut);
  SizeEquations equations(site.facts());
  std::vector<int64_t> numbers;
  for (const SizeAssignment& sizes : size_assignments(*cut, site.sdpa, equations))
    if (!sizes.is_fallback() && sizes.renumbers() == renumbered) numbers.push_back(sizes.of(Dim::symbol("B")).value_or(-1));
  return numbers;
}

AttentionModel with_fixed_lengths(const std::string& length) {
  return {.heads = "  sizes = Constant<value = int64[4] {0, 0, " + length +
                   ", 8}>()\n  kh = Reshape(k, sizes)\n  vh = Identity(v)\n"};
}

TEST(Sizes, BatchesAreSmallAndAMultiple) {
  SiteFixture site(with_lengths(with_fixed_lengths("49").text(), "49"));
  EXPECT_THAT(batches(site), ElementsAre(3, 12));
}

TEST(Sizes, BatchesOfManyScoresAreSmall) {
  AttentionModel model = with_fixed_lengths("512");
  model.scores = "  scaled = Mul(product, c)\n  scores = Dropout<seed = 512>(scaled)\n";
  SiteFixture site(with_lengths(model.text(), "512"));
  EXPECT_THAT(batches(site), ElementsAre(3, 2));
  EXPECT_THAT(batches(site, true), ElementsAre()) << "an attribute means the length";
}

TEST(Sizes, LargeLengthsInListsOfSizesGetOtherNumbers) {
  SiteFixture site(with_lengths(with_fixed_lengths("512").text(), "512"));
  EXPECT_THAT(batches(site, true), ElementsAre(3, 12));
}

}  // namespace
}  // namespace attn_opt
