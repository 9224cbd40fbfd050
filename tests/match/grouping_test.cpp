// Groupings: which factors each axis holds, in two flat lists.
#include "attn_opt/internal/grouping.h"

#include <gmock/gmock.h>

#include <array>
#include <stdexcept>

namespace attn_opt {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// [0] [] [2 1]
Grouping three_axes() {
  Grouping grouping;
  grouping.add_axis(std::array{0});
  grouping.end_axis();
  grouping.add_factor(2);
  grouping.add_factor(1);
  grouping.end_axis();
  return grouping;
}

TEST(Grouping, HoldsFactorsByAxis) {
  const Grouping grouping = three_axes();
  ASSERT_EQ(grouping.rank(), 3u);
  EXPECT_THAT(grouping.axis(0), ElementsAre(0));
  EXPECT_THAT(grouping.axis(1), IsEmpty());
  EXPECT_THAT(grouping.axis(2), ElementsAre(2, 1));
  EXPECT_EQ(grouping.unit_axes(), 1u);
  EXPECT_EQ(grouping.without_unit_axes().rank(), 2u);
  EXPECT_THROW(grouping.axis(3), std::out_of_range);
}

TEST(Grouping, AxesAreReordered) {
  const Grouping reordered = three_axes().reordered(std::array<size_t, 3>{2, 0, 1});
  EXPECT_THAT(reordered.axis(0), ElementsAre(2, 1));
  EXPECT_THAT(reordered.axis(1), ElementsAre(0));
  EXPECT_THAT(reordered.axis(2), IsEmpty());
}

TEST(Grouping, FactorIsSplitInItsPlace) {
  Grouping grouping = three_axes();
  grouping.split(1);
  EXPECT_THAT(grouping.axis(0), ElementsAre(0));
  EXPECT_THAT(grouping.axis(1), IsEmpty());
  EXPECT_THAT(grouping.axis(2), ElementsAre(3, 1, 2));
}

TEST(Grouping, FactorsAreRegrouped) {
  Grouping grouping = three_axes();
  grouping.regroup({2, 3});
  EXPECT_THAT(grouping.axis(0), ElementsAre(0, 2));
  EXPECT_THAT(grouping.axis(1), ElementsAre(1));
}

}  // namespace
}  // namespace attn_opt
