// Functions of many floats against the standard library's, for counts that fill vectors and that do not.
#include "src/exec/elementwise/vector_functions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace attn_opt {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr int kMostCount = 35;

/// Expects ACTUAL within ULPS units in the last place of EXPECTED.
void expect_near(double expected, float actual, double ulps) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(actual));
    return;
  }
  const auto rounded = static_cast<float>(expected);
  const double unit = std::nextafter(std::abs(rounded), kInfinity) - std::abs(rounded);
  EXPECT_LE(std::abs(actual - expected), ulps * unit) << "of " << expected;
}

/// COUNT numbers from -5 to 5, some near 0.
std::vector<float> numbers(int count) {
  std::vector<float> found;
  for (int i = 0; i < count; ++i)
    found.push_back(i % 5 == 4 ? 1e-6f * static_cast<float>(i) : -5 + 0.31f * static_cast<float>(i));
  return found;
}

using Function = void (*)(const float*, int64_t, float*);

void expect_function(Function function, double (*expected)(double), double ulps) {
  for (int count = 0; count <= kMostCount; ++count) {
    const std::vector<float> from = numbers(count);
    std::vector<float> to(static_cast<size_t>(count) + 1, 7);
    function(from.data(), count, to.data());
    for (size_t i = 0; i < from.size(); ++i) expect_near(expected(double{from[i]}), to[i], ulps);
    EXPECT_EQ(to.back(), 7) << "written behind " << count;
  }
  const std::vector<float> special = {kInfinity, -kInfinity, kNaN, -0.0f, 1, std::nextafterf(1, 0), 3.99f, 4, -30};
  std::vector<float> to(special.size());
  function(special.data(), static_cast<int64_t>(special.size()), to.data());
  for (size_t i = 0; i < special.size(); ++i) expect_near(expected(double{special[i]}), to[i], ulps);
  EXPECT_TRUE(std::signbit(to[3]));
}

TEST(VectorFunctions, Erf) { expect_function(error_functions, std::erf, 3); }
TEST(VectorFunctions, Tanh) { expect_function(hyperbolic_tangents, std::tanh, 3); }

TEST(VectorFunctions, Softmax) {
  for (int count = 1; count <= kMostCount; ++count) {
    std::vector<float> row = numbers(count);
    if (count > 2) row[1] = -kInfinity;
    const float most = *std::max_element(row.begin(), row.end());
    const auto weight = [most](float x) { return std::exp(double{x - most}); };
    double sum = 0;
    for (const float x : row) sum += weight(x);
    std::vector<float> to(row.size());
    softmax(row.data(), count, to.data());
    for (size_t i = 0; i < row.size(); ++i) expect_near(weight(row[i]) / sum, to[i], 3);
  }
}

TEST(VectorFunctions, SoftmaxOfNoNumbersIsNaN) {
  for (const float odd : {kNaN, kInfinity}) {
    std::vector<float> row = numbers(11), to(11);
    row[9] = odd;
    softmax(row.data(), 11, to.data());
    for (const float y : to) EXPECT_TRUE(std::isnan(y));
  }
  std::vector<float> row(11, -kInfinity), to(11);
  softmax(row.data(), 11, to.data());
  for (const float y : to) EXPECT_TRUE(std::isnan(y));
}

TEST(VectorFunctions, SumsAndRows) {
  for (int count = 0; count <= kMostCount; ++count) {
    const std::vector<float> row = numbers(count);
    double sum = 0, squares = 0;
    for (const float x : row) {
      sum += double{x};
      squares += (double{x} - 0.5) * (double{x} - 0.5);
    }
    EXPECT_NEAR(sum_of(row.data(), count), sum, 1e-12);
    EXPECT_NEAR(sum_of_squares(row.data(), count, 0.5), squares, 1e-12 * (1 + squares));
    const std::vector<double> scale(row.size(), 3), bias(row.size(), -1);
    std::vector<float> to(row.size());
    normalize_row(row.data(), count, 0.5, 2, scale.data(), bias.data(), to.data());
    for (size_t i = 0; i < row.size(); ++i) expect_near((double{row[i]} - 0.5) * 2 * 3 - 1, to[i], 1);
  }
}

}  // namespace
}  // namespace attn_opt
