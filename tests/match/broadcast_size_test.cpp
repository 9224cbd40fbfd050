#include "src/match/sizes/broadcast_size.h"

#include <gtest/gtest.h>

namespace attn_opt {
namespace {

const Dim kA = Dim::symbol("a"), kB = Dim::symbol("b"), kC = Dim::symbol("c");

Dim join(const Dim& one, const Dim& other) { return broadcast_size(one, other); }

TEST(BroadcastSize, KnowsNoOrderAndNoNesting) {
  EXPECT_EQ(join(kA, kB), join(kB, kA));
  EXPECT_EQ(join(join(kA, kB), kC), join(kA, join(kC, kB)));
  EXPECT_EQ(join(join(kA, kB), kC).str(), "?broadcast(a, b, c)");
}

TEST(BroadcastSize, TakesEachSizeOnce) {
  EXPECT_EQ(join(kA, kA), kA);
  EXPECT_EQ(join(join(kA, kB), kB), join(kA, kB));
  EXPECT_EQ(join(join(kA, kB), join(kB, kC)), join(join(kA, kB), kC));
}

TEST(BroadcastSize, LeavesOutWhatIsOneOfTheOthers) {
  EXPECT_EQ(join(kA, minimum(kA, 5)), kA);
  EXPECT_EQ(join(join(kA, kB), minimum(join(kA, kB), 5)), join(kA, kB));
  EXPECT_EQ(join(join(kA, kB), maximum(kA, kB)), join(kA, kB));
  EXPECT_EQ(join(kA, join(minimum(kA, kB), kB)), join(kA, kB));
}

TEST(BroadcastSize, KeepsWhatMayBeAnother) {
  EXPECT_NE(join(kA, minimum(kA, 1)), kA) << "1 where a is not";
  EXPECT_NE(join(kA, maximum(kA, 5)), kA) << "5 where a is 1";
  EXPECT_NE(join(kA, minimum(kB, 5)), kA);
  EXPECT_NE(join(kB, minimum(join(kA, kB), 5)), kB) << "a where b is 1";
  EXPECT_NE(join(kA, kA + 1), kA);
}

}  // namespace
}  // namespace attn_opt
