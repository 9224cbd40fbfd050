// Axis maps: each is checked against what the operators do to a tensor's axes.
#include "attn_opt/internal/axis_map.h"

#include <gmock/gmock.h>

namespace attn_opt {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

const Dim kB = Dim::symbol("b"), kS = Dim::symbol("s");
const std::vector<Role> kBhsd = {Role::kBatch, Role::kHead, Role::kRow, Role::kFeature};

/// (b, 8, s, 64).
AxisMap heads() { return AxisMap::of({kB, 8, kS, 64}, kBhsd); }

std::string text(const std::optional<AxisMap>& map) { return map ? map->str() : "none"; }

TEST(AxisMap, OfAxesOfOneFactorEach) {
  EXPECT_EQ(heads().str(), "[b=b][h=8][s=s][d=64]");
  EXPECT_TRUE(heads().is_bhsd());
  EXPECT_FALSE(heads().has_repeats());
  EXPECT_EQ(heads().size(Role::kHead), Dim(8));
  const AxisMap key = AxisMap::of({kB, 8, 64, kS}, {Role::kBatch, Role::kHead, Role::kFeature, Role::kRow});
  EXPECT_EQ(key.str(), "[b=b][h=8][d=64][s=s]");
  EXPECT_FALSE(key.is_bhsd());
}

TEST(AxisMap, AxesOfSizeOneHoldNothing) {
  const AxisMap map = AxisMap::of({1, 8, 1, 64}, kBhsd);
  EXPECT_EQ(map.str(), "[][h=8][][d=64]");
  EXPECT_TRUE(map.is_bhsd());
  EXPECT_EQ(map.size(Role::kBatch), Dim(1));
  EXPECT_EQ(map.factors().size(), 2u);
}

TEST(AxisMap, MergesBatchAndHeads) {
  const AxisMap map = heads().regrouped({kB * 8, kS, 64}).value();
  EXPECT_EQ(map.str(), "[b=b h=8][s=s][d=64]");
  EXPECT_EQ(text(map.regrouped({kB, 8, kS, 64})), heads().str());
  EXPECT_EQ(text(map.regrouped({8, kB, kS, 64})), "none") << "heads are the inner ones";
}

TEST(AxisMap, TransposesUndoEachOther) {
  const std::vector<int64_t> perm = {0, 2, 3, 1};
  EXPECT_EQ(heads().after_transpose(perm).str(), "[b=b][s=s][d=64][h=8]") << "axis i of the result is axis perm[i]";
  EXPECT_EQ(heads().before_transpose(perm).str(), "[b=b][d=64][h=8][s=s]");
  EXPECT_EQ(heads().after_transpose(perm).before_transpose(perm).str(), heads().str());
}

TEST(AxisMap, MergedAndSplitFeatures) {
  const AxisMap rows_first = heads().before_transpose({0, 2, 1, 3});
  EXPECT_EQ(rows_first.str(), "[b=b][s=s][h=8][d=64]");
  const auto merged = rows_first.regrouped({kB, kS, 512});
  EXPECT_EQ(text(merged), "[b=b][s=s][h=8 d=64]");
  EXPECT_TRUE(merged->is_three_dimensional());
  EXPECT_FALSE(rows_first.is_three_dimensional());
  EXPECT_EQ(text(merged->regrouped({kB, kS, 8, 64})), rows_first.str());
  EXPECT_EQ(text(rows_first.regrouped({kB * kS, 512})), "[b=b s=s][h=8 d=64]");
  EXPECT_EQ(text(rows_first.regrouped({1, kB, kS, 1, 512})), "[][b=b][s=s][][h=8 d=64]");
}

TEST(AxisMap, HeadsBehindFeaturesAreNotThreeDimensional) {
  const AxisMap features_first = heads().before_transpose({0, 3, 1, 2});
  EXPECT_EQ(features_first.str(), "[b=b][s=s][d=64][h=8]");
  const auto wrong = features_first.regrouped({kB, kS, 512});
  EXPECT_EQ(text(wrong), "[b=b][s=s][d=64 h=8]");
  EXPECT_FALSE(wrong->is_three_dimensional());
}

TEST(AxisMap, RegroupingSplitsFactors) {
  const auto split = heads().regrouped({kB, 2, 4, kS, 64});
  EXPECT_EQ(text(split), "[b=b][h=2][h=4][s=s][d=64]");
  EXPECT_EQ(text(split->regrouped({kB, 8, kS, 64})), "[b=b][h=2 h=4][s=s][d=64]");
  EXPECT_TRUE(split->regrouped({kB, 8, kS, 64})->is_bhsd()) << "both factors in their order";
  EXPECT_EQ(split->size(Role::kHead), Dim(8));
  const auto swapped = split->after_transpose({0, 2, 1, 3, 4}).regrouped({kB, 8, kS, 64});
  EXPECT_EQ(text(swapped), "[b=b][h=4 h=2][s=s][d=64]");
  EXPECT_FALSE(swapped->is_bhsd()) << "heads in another order";
}

TEST(AxisMap, RegroupingThatCutsThroughFactors) {
  EXPECT_EQ(text(heads().regrouped({kB, 3, kS, 64})), "none");
  EXPECT_EQ(text(heads().regrouped({kB, 16, kS, 32})), "none") << "rows lie between heads and features";
  EXPECT_EQ(text(heads().regrouped({kB, 8, kS})), "none") << "elements are left over";
  EXPECT_EQ(text(heads().regrouped({kB, 8, kS, 64, 2})), "none") << "elements are missing";
  EXPECT_EQ(text(heads().regrouped({kB, 8, Dim::symbol("t"), 64})), "none");
}

/// (b, 2, s, 64) -> (b, 2, 1, s, 64) -> Expand to (b, 2, 4, s, 64) -> (b, 8, s, 64): head j reads 2-head j / 4.
TEST(AxisMap, InterleavedRepeats) {
  const auto expanded = heads().regrouped({kB, 2, 4, kS, 64});
  const auto before = expanded->before_expand({kB, 2, 1, kS, 64}, {kB, 2, 4, kS, 64});
  ASSERT_TRUE(before.has_value());
  EXPECT_EQ(before->str(), "[b=b][h=2][][s=s][d=64]");
  EXPECT_TRUE(before->has_repeats());
  EXPECT_TRUE(before->repeats_interleave());
  EXPECT_EQ(before->size(Role::kHead), Dim(2));
  EXPECT_EQ(before->size(Role::kHead, true), Dim(4));
  EXPECT_TRUE(before->regrouped({kB, 2, kS, 64})->is_bhsd());
}

/// (b, 1, 2, s, 64) -> Expand to (b, 4, 2, s, 64) -> (b, 8, s, 64): head j reads 2-head j % 2.
TEST(AxisMap, TiledRepeats) {
  const auto before = heads().regrouped({kB, 4, 2, kS, 64})->before_expand({kB, 1, 2, kS, 64}, {kB, 4, 2, kS, 64});
  ASSERT_TRUE(before.has_value());
  EXPECT_EQ(before->str(), "[b=b][][h=2][s=s][d=64]");
  EXPECT_FALSE(before->repeats_interleave());
}

TEST(AxisMap, OneHeadForAll) {
  const auto before = heads().before_expand({kB, 1, kS, 64}, {kB, 8, kS, 64});
  EXPECT_EQ(text(before), "[b=b][][s=s][d=64]");
  EXPECT_TRUE(before->repeats_interleave()) << "the only ones";
  EXPECT_TRUE(before->is_bhsd());
}

TEST(AxisMap, ExpandOfNewAxesAndOfOtherRoles) {
  const auto batch = heads().before_expand({8, kS, 64}, {kB, 8, kS, 64});
  EXPECT_EQ(text(batch), "[h=8][s=s][d=64]") << "a leading axis that Expand adds";
  EXPECT_FALSE(batch->repeats_interleave()) << "it is not heads that are repeated";
  EXPECT_EQ(text(heads().before_expand({kB, 2, kS, 64}, {kB, 8, kS, 64})), "none") << "no Expand does that";
  EXPECT_EQ(text(heads().before_expand({1, kB, 8, kS, 64}, {kB, 8, kS, 64})), "none");
  EXPECT_EQ(text(heads().before_expand({kB, 2, 1, kS, 64}, {kB, 2, 4, kS, 64})), "none") << "of another rank than the map";
}

TEST(AxisMap, RowsOfAPart) {
  EXPECT_EQ(text(heads().with_size(Role::kRow, 2, kS + 3)), "[b=b][h=8][s=s + 3][d=64]");
  EXPECT_EQ(text(heads().with_size(Role::kRow, 1, 3)), "none") << "no axis of rows";
  const auto merged = heads().regrouped({kB, kS * 8, 64});
  ASSERT_TRUE(merged.has_value());
  EXPECT_EQ(text(merged->with_size(Role::kRow, 1, 3)), "none") << "rows are not alone there";
}

TEST(AxisMap, OrderOfRoles) {
  const AxisMap rows_first = heads().before_transpose({0, 2, 1, 3});
  EXPECT_TRUE(rows_first.is_order({Role::kBatch, Role::kRow, Role::kHead, Role::kFeature}));
  EXPECT_TRUE(rows_first.after_transpose({0, 2, 1, 3}).is_bhsd());
  EXPECT_EQ(rows_first.axis_of(Role::kRow, {false, false, false, false}), 1);
  EXPECT_EQ(heads().axis_of(Role::kRow, {false, false, true, false}), std::nullopt) << "taken";
}

TEST(AxisMap, SizesThatAreOnlyKnownByName) {
  const Dim h = Dim::symbol("h"), d = Dim::symbol("d");
  const AxisMap map = AxisMap::of({kB, h, kS, d}, kBhsd).before_transpose({0, 2, 1, 3});
  EXPECT_TRUE(map.regrouped({kB, kS, h * d})->is_three_dimensional());
  EXPECT_EQ(text(map.regrouped({kB, kS, d * h, 1})), "[b=b][s=s][h=h d=d][]");
  EXPECT_EQ(text(map.regrouped({kB, kS, d, h})), "none");
}

TEST(AxisMap, EmptyAxesEnd) { EXPECT_EQ(text(heads().regrouped({0, 8, kS, 64})), "none"); }

TEST(AxisMap, FactorsSplitAlike) {
  AxisMap merged = AxisMap::of({8, kS, 64}, {Role::kBatch, Role::kRow, Role::kFeature});
  AxisMap apart = AxisMap::of({2, 4, 1, 64}, {Role::kBatch, Role::kBatch, Role::kRow, Role::kFeature});
  EXPECT_TRUE(AxisMap::split_alike(merged, Role::kBatch, apart, Role::kBatch));
  EXPECT_EQ(merged.str(), "[b=2 b=4][s=s][d=64]");
  EXPECT_EQ(apart.str(), "[b=2][b=4][][d=64]");
  AxisMap other = AxisMap::of({3, 4}, {Role::kBatch, Role::kBatch});
  EXPECT_FALSE(AxisMap::split_alike(merged, Role::kBatch, other, Role::kBatch)) << "2 and 3";
  EXPECT_FALSE(AxisMap::split_alike(merged, Role::kRow, apart, Role::kRow)) << "one has no rows";
}

}  // namespace
}  // namespace attn_opt
