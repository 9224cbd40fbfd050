#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <thread>

#include "src/exec/reduction/matmul.h"
#include "src/exec/reduction/wide_product.h"

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

using Floats = std::vector<float>;

Floats some_floats(int64_t count, uint32_t seed) {
  Floats values(static_cast<size_t>(count));
  for (float& x : values) x = static_cast<float>((seed = seed * 1664525 + 1013904223) >> 8) * 0x1p-23f - 1;
  return values;
}

/// alpha * op(A) op(B) + beta * C, element by element in double.
Floats expected_product(const MatrixProduct& p, const Floats& a, const Floats& b, Floats c) {
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j < p.n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < p.k; ++l) {
        sum += double{a[static_cast<size_t>(p.transpose_a ? l * p.m + i : i * p.k + l)]} *
               double{b[static_cast<size_t>(p.transpose_b ? j * p.k + l : l * p.n + j)]};
      }
      float& to = c[static_cast<size_t>(i * p.n + j)];
      to = static_cast<float>(p.alpha * sum + (p.beta == 0 ? 0 : p.beta * double{to}));
    }
  }
  return c;
}

void expect_product(const MatrixProduct& p) {
  const Floats a = some_floats(p.m * p.k, 1), b = some_floats(p.k * p.n, 2);
  Floats c = p.beta == 0 ? Floats(static_cast<size_t>(p.m * p.n), NAN) : some_floats(p.m * p.n, 3);
  const Floats expected = expected_product(p, a, b, c);
  multiply(p, a.data(), b.data(), c.data());
  for (size_t i = 0; i < c.size(); ++i) {
    ASSERT_NEAR(c[i], expected[i], 1e-4) << p.m << " x " << p.n << " x " << p.k << ", element " << i;
  }
}

TEST(Multiply, MatricesOfAnySizeAreMultiplied) {
  for (const int64_t m : {1, 24, 29, 131}) {
    for (const int64_t n : {16, 33, 193, 400}) {
      for (const int64_t k : {1, 100, 385, 770}) expect_product({m, n, k});
    }
  }
}

TEST(Multiply, TransposedFactorsAndTheSumWithCAreThoseOfTheDefinition) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) expect_product({61, 217, 401, transpose_a, transpose_b, 0.5, -2});
  }
}

TEST(Multiply, ThreadsChangeNothing) {
  const MatrixProduct whole{200, 300, 800};
  const Floats a = some_floats(whole.m * whole.k, 1), b = some_floats(whole.k * whole.n, 2);
  Floats c(static_cast<size_t>(whole.m * whole.n)), again = c;
  ThreadPool one(1), two(2);
  multiply(one, whole, a.data(), b.data(), c.data());
  multiply(two, whole, a.data(), b.data(), again.data());
  EXPECT_EQ(again, c);
}

/// Of our own product. OpenBLAS's, where there are no such vectors, adds in the order of the blocks that it makes of all rows.
TEST(Multiply, ARowOfWideVectorsIsTheSameWhateverRowsAreBesideIt) {
  const MatrixProduct whole{200, 300, 800};
  const Floats a = some_floats(whole.m * whole.k, 1), b = some_floats(whole.k * whole.n, 2);
  Floats c(static_cast<size_t>(whole.m * whole.n)), part(static_cast<size_t>(97 * whole.n));
  multiply(whole, a.data(), b.data(), c.data());
  multiply({97, whole.n, whole.k}, a.data() + 31 * whole.k, b.data(), part.data());
  if (is_for_wide_vectors(whole)) {
    EXPECT_TRUE(std::ranges::equal(part, std::span(c).subspan(static_cast<size_t>(31 * whole.n), part.size())));
  }
}

}  // namespace
}  // namespace attn_opt
