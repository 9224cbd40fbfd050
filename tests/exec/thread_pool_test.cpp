#include "src/exec/thread_pool.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace attn_opt {
namespace {

TEST(ThreadPool, EachNumberIsTakenOnce) {
  ThreadPool pool(4);
  for (int loop = 0; loop < 200; ++loop) {
    std::vector<std::atomic<int>> taken(97);
    pool.parallel_for(97, [&](int64_t i) { ++taken[static_cast<size_t>(i)]; });
    for (const auto& times : taken) EXPECT_EQ(times, 1);
  }
}

TEST(ThreadPool, LoopsMayNest) {
  ThreadPool pool(3);
  std::atomic<int64_t> sum = 0;
  pool.parallel_for(8, [&](int64_t i) { pool.parallel_for(8, [&](int64_t j) { sum += 8 * i + j; }); });
  EXPECT_EQ(sum, 64 * 63 / 2);
}

TEST(ThreadPool, WhatIsThrownReachesTheCallerAndTheNextLoopRuns) {
  ThreadPool pool(4);
  EXPECT_THROW(pool.parallel_for(100,
                                 [](int64_t i) {
                                   if (i == 7) throw std::runtime_error("7");
                                 }),
               std::runtime_error);
  std::atomic<int> count = 0;
  pool.parallel_for(10, [&](int64_t) { ++count; });
  EXPECT_EQ(count, 10);
}

}  // namespace
}  // namespace attn_opt
