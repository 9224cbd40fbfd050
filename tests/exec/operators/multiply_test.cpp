#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "src/exec/reduction/matmul.h"

namespace attn_opt {
namespace {

TEST(Multiply, ThreadsDoNotShareBuffers) {
  const MatrixProduct shape{130, 130, 130};
  std::vector<float> a(130 * 130), b(130 * 130), expected(130 * 130);
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<float>(i * 7919 % 1000) / 500 - 1;
    b[i] = static_cast<float>(i * 104729 % 1000) / 500 - 1;
  }
  multiply(shape, a.data(), b.data(), expected.data());
  std::atomic<int> wrong = 0;
  const auto work = [&] {
    std::vector<float> c(expected.size());
    for (int i = 0; i < 3'000; ++i) {
      multiply(shape, a.data(), b.data(), c.data());
      wrong += c != expected;
    }
  };
  {
    std::jthread one(work), two(work);
  }
  EXPECT_EQ(wrong, 0);
}

TEST(Multiply, BlocksOfRowsMakeTheWhole) {
  const MatrixProduct shape{1000, 70, 90};
  std::vector<float> a(1000 * 90), b(90 * 70), whole(1000 * 70), blocks(1000 * 70);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 17);
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 13);
  multiply(shape, a.data(), b.data(), whole.data());
  ThreadPool pool(3);
  multiply(pool, shape, a.data(), b.data(), blocks.data());
  EXPECT_EQ(blocks, whole);
}

}  // namespace
}  // namespace attn_opt
