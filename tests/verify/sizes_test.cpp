// The numbers that symbols get.
#include "src/verify/sizes.h"

#include <gmock/gmock.h>

#include "src/verify/site_cut.h"
#include "tests/verify/site_fixture.h"

namespace attn_opt {
namespace {

using testing::ElementsAre;

/// The numbers of SIZE that are tried whatever others show, with constants that are RENUMBERED or not.
std::vector<int64_t> numbers_of(const Dim& size, SiteFixture& site, bool renumbered) {
  site.sdpa = site.plain_sdpa();
  const Emission emission = site.attention({"q", "k", "v"});
  const auto cut = cut_site(emission, site.sdpa, {site.facts(), inline_tensors(), ReadNodes(nullptr)});
  EXPECT_TRUE(cut);
  SizeEquations equations(site.facts());
  std::vector<int64_t> numbers;
  for (const SizeAssignment& sizes : size_assignments(*cut, site.sdpa, equations))
    if (!sizes.is_fallback() && sizes.renumbers() == renumbered) numbers.push_back(sizes.of(size).value_or(-1));
  return numbers;
}

std::vector<int64_t> batches(SiteFixture& site, bool renumbered = false) {
  return numbers_of(Dim::symbol("B"), site, renumbered);
}

AttentionModel with_fixed_lengths(const std::string& length) {
  return {.heads = "  sizes = Constant<value = int64[4] {0, 0, " + length +
                   ", 8}>()\n  kh = Reshape(k, sizes)\n  vh = Identity(v)\n"};
}

TEST(Sizes, BatchesAreSmallAndAMultiple) {
  SiteFixture site(with_lengths(with_fixed_lengths("49").text(), "49"));
  EXPECT_THAT(batches(site), ElementsAre(3, 12));
}

/// LENGTH queries and keys, which an attribute means.
SiteFixture with_meant_lengths(const std::string& length) {
  AttentionModel model = with_fixed_lengths(length);
  model.scores = "  scaled = Mul(product, c)\n  scores = Dropout<seed = " + length + ">(scaled)\n";
  return SiteFixture(with_lengths(model.text(), length));
}

TEST(Sizes, BatchesOfManyScoresAreSmall) {
  SiteFixture site = with_meant_lengths("512");
  EXPECT_THAT(batches(site), ElementsAre(3, 2));
  EXPECT_THAT(batches(site, true), ElementsAre()) << "an attribute means the length";
  SiteFixture shorter = with_meant_lengths("250");
  EXPECT_THAT(batches(shorter), ElementsAre(3, 6)) << "half the multiple";
}

TEST(Sizes, BatchesOfLargeElementsAreOneAndTwo) {
  SiteFixture site = with_meant_lengths("600");
  EXPECT_THAT(batches(site), ElementsAre(1, 2));
}

TEST(Sizes, ManyHeadsAndFeaturesCountAsScoresDo) {
  SiteFixture site(replaced(replaced(AttentionModel{}.text(), ",4,", ",64,"), ",8]", ",128]"));
  EXPECT_THAT(batches(site), ElementsAre(3, 6, 3)) << "the last of one query";
}

TEST(Sizes, LargeLengthsInListsOfSizesGetOtherNumbers) {
  SiteFixture site(with_lengths(with_fixed_lengths("512").text(), "512"));
  EXPECT_THAT(batches(site, true), ElementsAre(3, 12));
}

/// Attention over LENGTH = ROWS * COLUMNS pixels, whose scores a list of sizes divides into those.
std::string of_image(const std::string& length, const std::string& rows, const std::string& columns) {
  AttentionModel model;
  model.scores = "  parts = Constant<value_ints = [-1, 4, " + rows + ", " + columns + ", " + length +
                 "]>()\n  divided = Reshape(product, parts)\n  scaled = Mul(divided, c)\n"
                 "  whole = Constant<value_ints = [-1, 4, " +
                 length + ", " + length + "]>()\n  scores = Reshape(scaled, whole)\n";
  return with_lengths(model.text(), length);
}

TEST(Sizes, AnExtentThatIsAProductGetsTheProductOfNumbers) {
  SiteFixture square(of_image("784", "28", "28"));
  EXPECT_THAT(numbers_of(28, square, true), ElementsAre(5, 5));
  EXPECT_THAT(numbers_of(784, square, true), ElementsAre(25, 25));
  SiteFixture wide(of_image("800", "20", "40"));
  EXPECT_THAT(numbers_of(20, wide, true), ElementsAre(5, 5));
  EXPECT_THAT(numbers_of(40, wide, true), ElementsAre(7, 7));
  EXPECT_THAT(numbers_of(800, wide, true), ElementsAre(35, 35));
}

TEST(Sizes, NumbersBesideBlocksAreAsManyBlocksAndAsMuchMore) {
  const Shrinking shrinking{.numbers = {}, .factors = {}, .renumbers = true, .block = 512, .block_number = 19};
  for (const auto& [extent, number] : {std::pair(512, 19), {1024, 38}, {544, 51}, {511, 18}, {32, 32}, {256, 256}, {480, 480}})
    EXPECT_EQ(shrinking.number_of(extent), number) << extent;
  EXPECT_EQ(shrinking.in_blocks(Dim::parse("512*floor(s/512) - 512 + max(s, 544)")).str(),
            Dim::parse("19*floor(s/19) - 19 + max(s, 51)").str());
}

TEST(Sizes, KeysOfThreeBlocksAreThreeOfTheirNumber) {
  SiteFixture site(with_lengths(with_fixed_lengths("3072").text(), "1024", "3072"));
  EXPECT_THAT(numbers_of(1024, site, true), ElementsAre(19, 19));
  EXPECT_THAT(numbers_of(3072, site, true), ElementsAre(57, 57));
}

TEST(Sizes, AnImageOfFixedSizeIsRunSmaller) {
  SiteFixture site(of_image("784", "28", "28"));
  site.sdpa = site.plain_sdpa();
  const Verification result = site.verify(site.attention({"q", "k", "v"}));
  EXPECT_EQ(result.verdict, Verdict::kVerified) << result.reason;
}

TEST(Sizes, ListsOfTheModelStayAsTheyAre) {
  SiteFixture site(of_image("784", "28", "28"));
  site.sdpa = site.plain_sdpa();
  const Emission emission = site.attention({"q", "k", "v"});
  const auto cut = cut_site(emission, site.sdpa, {site.facts(), inline_tensors(), ReadNodes(nullptr)});
  ASSERT_TRUE(cut);
  SizeEquations equations(site.facts());
  const Tensor list = Tensor::of<int64_t>({3}, {1, -1, 784});
  size_t renumbered = 0;
  for (const SizeAssignment& sizes : size_assignments(*cut, site.sdpa, equations)) {
    if (!sizes.renumbers()) continue;
    ++renumbered;
    EXPECT_THAT(sizes.renumbered(list).data<int64_t>(), ElementsAre(1, -1, sizes.of(784)));
    EXPECT_THAT(list.data<int64_t>(), ElementsAre(1, -1, 784));
  }
  EXPECT_GT(renumbered, 0U);
}

TEST(Sizes, EachNameIsOneInTurnWhereNothingIsAssumed) {
  SiteFixture site((AttentionModel()));
  const Emission emission = site.attention({"q", "k", "v"});
  Facts for_all(site.view(), inline_tensors(), false);
  const auto cut = cut_site(emission, site.sdpa, {for_all, inline_tensors(), ReadNodes(nullptr)});
  ASSERT_TRUE(cut);
  SizeEquations equations(for_all);
  const SizeAssignment first = size_assignments(*cut, site.sdpa, equations).front();
  std::vector<std::vector<int64_t>> apart;
  for (const SizeAssignment& sizes : sizes_apart(*cut, equations, first)) {
    apart.emplace_back();
    for (const char* name : {"B", "L", "S"}) apart.back().push_back(sizes.of(Dim::symbol(name)).value_or(-1));
  }
  EXPECT_THAT(apart, ElementsAre(ElementsAre(1, 5, 7), ElementsAre(3, 1, 7), ElementsAre(3, 5, 1)));

  SizeEquations usual(site.facts());
  EXPECT_TRUE(sizes_apart(*cut, usual, first).empty()) << "nothing is assumed of this site";
}

}  // namespace
}  // namespace attn_opt
