#include <gmock/gmock.h>

#include <cmath>
#include <thread>

#include "tests/exec/models.h"

namespace attn_opt::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kHeader = R"(<ir_version: 10, opset_import: ["" : 24]>)";

Tensor floats(Dims dims, const std::vector<float>& data) { return Tensor::of<float>(std::move(dims), data); }

TEST(Executor, RunsNodesWithInitializers) {
  const auto result = run_model(kHeader + R"(agraph (float[2] x) => (float[2] y) <float[2] w = {10, 20}> {
    t = Mul(x, w)
    y = Add(t, x)
  })",
                                {{"x", floats({2}, {1, 2})}});
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_THAT(values<float>((*result)[0]), ElementsAre(11, 42));
}

TEST(Executor, FeedsOverrideInitializersThatAreInputs) {
  const std::string text = kHeader + R"(agraph (float[1] x, float[1] w = {3}) => (float[1] y) { y = Mul(x, w) })";
  const Tensor x = floats({1}, {2});
  EXPECT_THAT(values<float>((*run_model(text, {{"x", x}}))[0]), ElementsAre(6));
  EXPECT_THAT(values<float>((*run_model(text, {{"x", x}, {"w", floats({1}, {5})}}))[0]), ElementsAre(10));
}

TEST(Executor, ReportsAMissingFeed) {
  const auto result = run_model(kHeader + "agraph (float[1] x) => (float[1] y) { y = Neg(x) }", {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidInput);
  EXPECT_EQ(result.error().where, "x");
}

TEST(Executor, ReportsAValueThatNothingProduces) {
  const auto result = run_model(kHeader + "agraph (float[1] x) => (float[1] y) { y = Add(x, nowhere) }", {});
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message(), HasSubstr("nowhere"));
}

TEST(Executor, NamesTheNodeThatFails) {
  auto model = parse_model(kHeader + "agraph (float[2] x, float[3] z) => (float[2] y) { y = Add(x, z) }");
  model.mutable_graph()->mutable_node(0)->set_name("the_sum");
  const auto executor = Executor::create(model, inline_tensors(), {});
  const auto result = executor->run({{"x", floats({2}, {1, 2})}, {"z", floats({3}, {1, 2, 3})}});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().where, "the_sum");
}

TEST(Executor, StopsAtTheMemoryLimit) {
  const std::string text = kHeader + "agraph (float[1] x, int64[1] s) => (float[N] y) { t = Expand(x, s)  y = Neg(t) }";
  const Feeds feeds{{"x", floats({1}, {1})}, {"s", Tensor::of<int64_t>({1}, {1000})}};
  ExecutorOptions options;
  options.memory_limit = 9000;  // two tensors of 4000 bytes fit
  EXPECT_TRUE(run_model(text, feeds, options));
  options.memory_limit = 7000;
  const auto result = run_model(text, feeds, options);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kLimit);
}

TEST(Executor, FreesTensorsAtTheirLastUse) {
  std::string text = kHeader + "agraph (float[1000] x) => (float[1000] y) { t0 = Neg(x) ";
  for (int i = 0; i < 50; ++i) {
    text.append("t").append(std::to_string(i + 1)).append(" = Neg(t").append(std::to_string(i)).append(") ");
  }
  ExecutorOptions options;
  options.memory_limit = 3 * 4000;
  EXPECT_TRUE(run_model(text + "y = Neg(t50) }", {{"x", floats({1000}, std::vector<float>(1000, 1))}}, options));
}

TEST(Executor, StopsAtTheDeadline) {
  ExecutorOptions options;
  options.deadline = std::chrono::steady_clock::now() - std::chrono::seconds(1);
  const auto result =
      run_model(kHeader + "agraph (float[1] x) => (float[1] y) { y = Neg(x) }", {{"x", floats({1}, {1})}}, options);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kLimit);
}

/// A loop without end, which ends at the deadline of OPTIONS.
void expect_loop_ends(const ExecutorOptions& options) {
  const auto result = run_model(kHeader + R"(agraph (float[1] x) => (float[1] y) {
    y = Loop <body = b (int64 i, bool c, float[1] s) => (bool d, float[1] t) { d = Identity(c) t = Identity(s) }> ("", "", x)
  })",
                                {{"x", floats({1}, {1})}}, options);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kLimit);
}

TEST(Executor, AnEndlessLoopStopsAtTheDeadline) {
  ExecutorOptions options;
  options.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
  expect_loop_ends(options);
}

TEST(Executor, AnEndlessLoopStopsAtTheDeadlineOfItsThread) {
  ExecutorOptions options;
  options.cpu_deadline = thread_cpu_time() + std::chrono::milliseconds(50);
  expect_loop_ends(options);
}

TEST(Executor, WaitingTakesNoTimeOfAThread) {
  const auto before = thread_cpu_time();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(thread_cpu_time() - before, std::chrono::milliseconds(100));
}

TEST(Executor, ComputesInDoubleWithConstantsWidened) {
  ExecutorOptions options;
  options.compute_f64 = true;
  const auto result = run_model(kHeader + R"(agraph (float16[1] x) => (float16[1] y) <float[1] w = {0.1}> {
    f = Cast<to = 1>(x)
    p = Mul(f, w)
    y = Cast<to = 10>(p)
  })",
                                {{"x", Tensor::scalar<Half>(Half(3.0f)).reshaped({1})}}, options);
  ASSERT_TRUE(result) << result.error().message();
  ASSERT_EQ((*result)[0].type(), onnx::TensorProto::DOUBLE);
  EXPECT_EQ((*result)[0].data<double>()[0], 3.0 * static_cast<double>(0.1f));
}

TEST(Executor, BranchesReadOuterValues) {
  const std::string text = kHeader + R"(agraph (bool c, float[1] x) => (float[1] y) {
    t = Neg(x)
    y = If (c) <then_branch = a () => (float[1] p) { p = Add(t, t) }, else_branch = b () => (float[1] q) { q = Identity(x) }>
  })";
  const Tensor x = floats({1}, {3});
  EXPECT_THAT(values<float>((*run_model(text, {{"c", Tensor::scalar(true)}, {"x", x}}))[0]), ElementsAre(-6));
  EXPECT_THAT(values<float>((*run_model(text, {{"c", Tensor::scalar(false)}, {"x", x}}))[0]), ElementsAre(3));
}

TEST(Executor, CallsLocalFunctionsWithTheirAttributes) {
  const auto result = run_model(R"(<ir_version: 10, opset_import: ["" : 24, "local" : 1]>
    agraph (float[1] x) => (float[1] y, float[1] z) { y = local.scaled<by = 3.0>(x)  z = local.scaled(x) }
    <domain: "local", opset_import: ["" : 24]> scaled <by: float = 2.0> (a) => (b) {
      factor = Constant<value_float: float = @by>()
      b = Mul(a, factor)
    })",
                                {{"x", floats({1}, {5})}});
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_THAT(values<float>((*result)[0]), ElementsAre(15));
  EXPECT_THAT(values<float>((*result)[1]), ElementsAre(10));
}

TEST(Executor, RefusesFunctionsThatCallThemselves) {
  const auto result = run_model(R"(<ir_version: 10, opset_import: ["" : 24, "local" : 1]>
    agraph (float[1] x) => (float[1] y) { y = local.f(x) }
    <domain: "local", opset_import: ["" : 24, "local" : 1]> f (a) => (b) { b = local.f(a) })",
                                {{"x", floats({1}, {5})}});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kLimit);
}

TEST(Executor, RunsAHundredThousandNodesInAChain) {
  onnx::ModelProto model = parse_model(kHeader + "agraph (float[1] x) => (float[1] y) { y = Identity(x) }");
  auto* graph = model.mutable_graph();
  graph->clear_node();
  std::string last = "x";
  for (int i = 0; i < 100000; ++i) {
    auto* node = graph->add_node();
    node->set_op_type("Neg");
    node->add_input(last);
    last = std::to_string(i);
    node->add_output(last);
  }
  graph->mutable_output(0)->set_name(last);
  const auto executor = Executor::create(model, inline_tensors(), {});
  ASSERT_TRUE(executor);
  const auto result = executor->run({{"x", floats({1}, {1})}});
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_THAT(values<float>((*result)[0]), ElementsAre(1));
}

TEST(Executor, LoopsStackTheirScanOutputs) {
  const auto result = run_model(kHeader + R"(agraph (int64 n, float[1] x) => (float[1] y, float[N, 1] all) {
    y, all = Loop <body = b (int64 i, bool c, float[1] s) => (bool d, float[1] t, float[1] o)
      { d = Identity(c) t = Add(s, x) o = Identity(t) }> (n, "", x)
  })",
                                {{"n", Tensor::scalar<int64_t>(3)}, {"x", floats({1}, {2})}});
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_THAT(values<float>((*result)[0]), ElementsAre(8));
  EXPECT_THAT(values<float>((*result)[1]), ElementsAre(4, 6, 8));
}

TEST(Executor, ScanWalksInputsBackwards) {
  const auto result = run_model(kHeader + R"(agraph (float s, float[3] x) => (float y, float[3] sums) {
    y, sums = Scan <num_scan_inputs = 1, scan_input_directions = [1], body = b (float a, float e) => (float t, float o)
      { t = Add(a, e) o = Identity(t) }> (s, x)
  })",
                                {{"s", Tensor::scalar<float>(0)}, {"x", floats({3}, {1, 2, 3})}});
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_THAT(values<float>((*result)[1]), ElementsAre(3, 5, 6));
}

}  // namespace
}  // namespace attn_opt::testing
