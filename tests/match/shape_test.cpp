#include "attn_opt/shape.h"

#include <gtest/gtest.h>

#include <utility>

#include "attn_opt/facts.h"

namespace attn_opt {
namespace {

template <class T>
concept CanBeRead = requires(T&& shape) { *std::forward<T>(shape); } || requires(T&& shape) { std::forward<T>(shape)->size(); };

static_assert(!CanBeRead<MaybeShape>, "what facts.shape() returns has no name to test yet");
static_assert(CanBeRead<const MaybeShape&>);
static_assert(!std::is_convertible_v<MaybeShape, const Shape*> && !std::is_convertible_v<MaybeShape, bool>);
static_assert(!std::is_constructible_v<MaybeShape, Shape>, "it would refer to what is gone");

TEST(MaybeShape, WhatIsNotKnownIsADefectToRead) {
  const MaybeShape unknown;
  EXPECT_FALSE(unknown);
  EXPECT_FALSE(unknown.has_rank(0));
  EXPECT_THROW(unknown.known(), Defect);
  EXPECT_THROW((void)*unknown, Defect);
  EXPECT_THROW((void)unknown->size(), Defect);
}

TEST(MaybeShape, RefersToTheShapeItWasMadeOf) {
  const Shape shape{2, Dim::symbol("s")};
  const MaybeShape known = shape;
  EXPECT_TRUE(known);
  EXPECT_TRUE(known.has_rank(2));
  EXPECT_EQ(&known.known(), &shape);
  EXPECT_EQ(known->back(), Dim::symbol("s"));
}

TEST(DimList, AnElementThatIsNotThereIsADefectToRead) {
  Shape shape{1, 2};
  EXPECT_EQ(shape[1], Dim(2));
  EXPECT_THROW(shape[2] = 0, Defect);
  EXPECT_THROW((void)std::as_const(shape)[static_cast<size_t>(-1)], Defect);
  shape.clear();
  EXPECT_THROW(shape.front() = 0, Defect);
  EXPECT_THROW((void)std::as_const(shape).back(), Defect);
}

}  // namespace
}  // namespace attn_opt
