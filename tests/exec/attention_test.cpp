// The Attention kernel against ONNX's own function body.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "src/exec/kernel.h"
#include "tests/exec/attention_case.h"
#include "tests/exec/node_case.h"

namespace attn_opt::testing {
namespace {

using P = onnx::TensorProto;

ExecutorOptions by_body(ExecutorOptions options) {
  options.schema_bodies = SchemaBodies::kAlways;
  return options;
}

/// Of results whose scores, weights or outputs are rounded to TYPE: the body rounds after every step, the kernel does not. A
/// score of 50, as softcap allows, is rounded by 4e-6 in float32, and its weight with it, on either side and differently on
/// each processor.
double tolerance(DataType type) {
  switch (type) {
    case P::DOUBLE: return 1e-11;
    case P::FLOAT: return 2e-5;
    case P::FLOAT16: return 2e-2;
    default: return 1e-1;
  }
}

/// The first element that differs by more than TOLERANCE, as "[i]: a, not b".
std::string first_difference(const Tensor& actual, const Tensor& expected, double tolerance) {
  const Tensor a = *actual.cast(P::DOUBLE), b = *expected.cast(P::DOUBLE);
  for (size_t i = 0; i < static_cast<size_t>(std::min(a.size(), b.size())); ++i) {
    const double x = a.data<double>()[i], y = b.data<double>()[i];
    if (excess(Tensor::scalar(x), Tensor::scalar(y), tolerance, tolerance) <= 1) continue;
    return "[" + std::to_string(i) + "]: " + std::to_string(x) + ", not " + std::to_string(y);
  }
  return print_dims(actual.dims()) + ", not " + print_dims(expected.dims());
}

void compare(const AttentionCase& drawn, const ExecutorOptions& options) {
  SCOPED_TRACE(describe(drawn));
  const Opsets opsets{{"", drawn.opset}};
  const auto expected = run_node(drawn.node, drawn.inputs, opsets, by_body(options));
  const auto actual = run_node(drawn.node, drawn.inputs, opsets, options);
  ASSERT_TRUE(expected.has_value()) << expected.error().message();
  ASSERT_TRUE(actual.has_value()) << actual.error().message();
  const double allowed = tolerance(options.compute_f64 ? P::DOUBLE : drawn.coarsest);
  for (int i = 0; i < drawn.node.output_size(); ++i) {
    if (drawn.node.output(i).empty()) continue;
    const size_t o = static_cast<size_t>(i);
    EXPECT_LE(excess((*actual)[o], (*expected)[o], allowed, allowed), 1)
        << "output " << i << " " << first_difference((*actual)[o], (*expected)[o], allowed);
  }
}

void sweep(DataType type, bool hostile, int count, const ExecutorOptions& options = {}) {
  std::mt19937 random(static_cast<unsigned>(type) * 2 + hostile);
  for (int i = 0; i < count && !::testing::Test::HasFailure(); ++i) {
    compare(draw_attention(random, type, hostile), options);
  }
}

ExecutorOptions in_double() {
  ExecutorOptions options;
  options.compute_f64 = true;
  return options;
}

TEST(AttentionSweep, Float) { sweep(P::FLOAT, false, 300); }
TEST(AttentionSweep, FloatWithInfinitiesAndNans) { sweep(P::FLOAT, true, 300); }
TEST(AttentionSweep, Double) { sweep(P::DOUBLE, false, 200); }
TEST(AttentionSweep, DoubleWithInfinitiesAndNans) { sweep(P::DOUBLE, true, 200); }
TEST(AttentionSweep, ComputedInDouble) { sweep(P::FLOAT, false, 200, in_double()); }
TEST(AttentionSweep, HalfComputedInDouble) { sweep(P::FLOAT16, false, 100, in_double()); }
TEST(AttentionSweep, Float16) { sweep(P::FLOAT16, false, 200); }
TEST(AttentionSweep, BFloat16) { sweep(P::BFLOAT16, false, 200); }

Tensor normal(Dims dims, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> draw;
  Tensor tensor(P::FLOAT, std::move(dims));
  for (float& x : tensor.mutable_data<float>()) x = draw(random);
  return tensor;
}

Tensor filled(Dims dims, float value) {
  Tensor tensor(P::FLOAT, std::move(dims));
  std::ranges::fill(tensor.mutable_data<float>(), value);
  return tensor;
}

Tensor attention(const std::string& node, const std::vector<Tensor>& inputs, const ExecutorOptions& options = {}) {
  const auto outputs = run_text(node, inputs, 25, options);
  EXPECT_TRUE(outputs.has_value()) << outputs.error().message();
  return outputs ? outputs->front() : Tensor();
}

TEST(Attention, IsCloseToDouble) {
  for (const char* node : {"y = Attention (q, k, v)", "y = Attention <is_causal = 1> (q, k, v)",
                           "y = Attention <left_window_size = 100, right_window_size = 3> (q, k, v)"}) {
    const std::vector<Tensor> inputs{normal({1, 4, 700, 64}, 1), normal({1, 2, 700, 64}, 2), normal({1, 2, 700, 64}, 3)};
    const Tensor exact = *attention(node, inputs, by_body(in_double())).cast(P::FLOAT);
    EXPECT_LE(excess(attention(node, inputs), exact, 1e-6, 1e-6), 1)
        << node << " " << first_difference(attention(node, inputs), exact, 1e-6);
  }
}

TEST(Attention, IsTheSameOnAnyNumberOfThreads) {
  const std::string model = R"(<ir_version: 10, opset_import: ["": 24]>
      agraph (float[b, h, l, d] q, float[b, g, s, d] k, float[b, g, s, e] v) => (float[b, h, l, e] y) {
        y = Attention <is_causal = 1> (q, k, v)
      })";
  for (const int64_t queries : {1, 400}) {  // few queries divide the keys
    const Feeds feeds{
        {"q", normal({1, 4, queries, 40}, 1)}, {"k", normal({1, 2, 3000, 40}, 2)}, {"v", normal({1, 2, 3000, 24}, 3)}};
    ExecutorOptions options;
    const auto alone = run_model(model, feeds, options);
    ASSERT_TRUE(alone.has_value()) << alone.error().message();
    for (options.threads = 2; options.threads < 5; ++options.threads) {
      const auto shared = run_model(model, feeds, options);
      ASSERT_TRUE(shared.has_value());
      EXPECT_EQ(values<float>(alone->front()), values<float>(shared->front()));
    }
  }
}

TEST(Attention, GivesTheMeanForARowOfLowestNumbersAndZeroForOneWithoutKeys) {
  const Tensor q = normal({1, 1, 1, 8}, 1), k = normal({1, 1, 4, 8}, 2);
  const Tensor v = Tensor::of<float>({1, 1, 4, 1}, {1, 2, 3, 6});
  const std::string node = "y = Attention (q, k, v, mask)";
  const auto with_mask = [&](float value) { return attention(node, {q, k, v, filled({1, 4}, value)}).data<float>()[0]; };
  EXPECT_FLOAT_EQ(with_mask(std::numeric_limits<float>::lowest()), 3);
  EXPECT_EQ(with_mask(-std::numeric_limits<float>::infinity()), 0);
  const Tensor none(P::BOOL, {1, 4});
  EXPECT_EQ(attention(node, {q, k, v, none}).data<float>()[0], 0);
}

TEST(Attention, DoesNotHideWhatTheBodyShows) {
  Tensor q = normal({1, 1, 2, 8}, 1), k = normal({1, 1, 300, 8}, 2), v = normal({1, 1, 300, 3}, 3);
  const std::string node = "y = Attention <is_causal = 1> (q, k, v)";
  EXPECT_TRUE(std::isfinite(attention(node, {q, k, v}).data<float>()[0]));
  v.mutable_data<float>()[299 * 3 + 1] = std::nanf("");  // of a key that no query may use: 0 * NaN
  const Tensor y = attention(node, {q, k, v});
  EXPECT_TRUE(std::isfinite(y.data<float>()[0]));
  EXPECT_TRUE(std::isnan(y.data<float>()[1]));
  k.mutable_data<float>()[299 * 8] = std::nanf("");  // NaN - infinity
  EXPECT_TRUE(std::isnan(attention(node, {q, k, v}).data<float>()[0]));
}

TEST(Attention, RefusesWhatDoesNotFit) {
  const Tensor q = normal({1, 4, 2, 8}, 1), k = normal({1, 2, 3, 8}, 2), v = normal({1, 2, 3, 5}, 3);
  const auto is_refused = [](const std::string& node, const std::vector<Tensor>& inputs) {
    const auto outputs = run_text("y = Attention " + node, inputs, 25);
    return !outputs && outputs.error().code == ErrorCode::kInvalidInput;
  };
  EXPECT_FALSE(is_refused("(q, k, v)", {q, k, v}));
  EXPECT_TRUE(is_refused("(q, k, v)", {q, normal({1, 3, 3, 8}, 1), v}));                        // heads
  EXPECT_TRUE(is_refused("(q, k, v)", {q, normal({1, 2, 3, 7}, 1), v}));                        // widths
  EXPECT_TRUE(is_refused("(q, k, v)", {q, k, normal({1, 2, 4, 5}, 1)}));                        // lengths
  EXPECT_TRUE(is_refused("(q, k, v)", {q, normal({1, 0, 3, 8}, 1), normal({1, 0, 3, 5}, 1)}));  // no heads
  EXPECT_TRUE(is_refused("(q, k, v)", {normal({2, 2, 8}, 1), normal({2, 2, 8}, 1), normal({2, 2, 8}, 1)}));
  EXPECT_TRUE(is_refused("<q_num_heads = 4, kv_num_heads = 2> (q, k, v)", {q, k, v}));
  EXPECT_TRUE(is_refused("<left_window_size = -2> (q, k, v)", {q, k, v}));
  EXPECT_TRUE(is_refused("<softmax_precision = 7> (q, k, v)", {q, k, v}));
  EXPECT_TRUE(is_refused("(q, k, v, m)", {q, k, v, filled({3, 3}, 0)}));
  EXPECT_TRUE(is_refused("(q, k, v, , p)", {q, k, v, Tensor(), k}));
  EXPECT_TRUE(is_refused("(q, k, v, , , , n)", {q, k, v, Tensor(), Tensor(), Tensor(), Tensor::of<int64_t>({2}, {1, 1})}));
}

}  // namespace
}  // namespace attn_opt::testing
