#include "src/trial/drawn_run.h"

#include <gtest/gtest.h>
#include <onnx/defs/parser.h>

#include <cmath>

namespace attn_opt {
namespace {

class DrawnRunTest : public ::testing::Test {
 protected:
  Expected<DrawnRun> run(const std::string& graph, DrawOptions options = {}) {
    const std::string text = "<ir_version: 8, opset_import: [\"\" : 18]>\n" + graph;
    EXPECT_TRUE(onnx::OnnxParser::Parse(model_, text.c_str()).IsOK());
    const auto executor = Executor::create(model_, inline_tensors(), {});
    return run_on_drawn(*executor, model_.graph(), options);
  }

  onnx::ModelProto model_;
};

const char* const kPast = R"(g (float[past, 2] p, float[seq, 2] x, float[total] mask) => (float[m, k] y) {
  c = Concat <axis = 0> (p, x) a = Constant <value_ints = [1]> () m = Unsqueeze (mask, a) y = Add (c, m) })";

TEST_F(DrawnRunTest, FindsWhichSizeIsASum) {
  const auto found = run(kPast);
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->inputs.sizes.at("total"), found->inputs.sizes.at("past") + found->inputs.sizes.at("seq"));
}

TEST_F(DrawnRunTest, LeavesGivenSizes) {
  DrawOptions options;
  options.sizes = {{"past", 4}, {"total", 9}};
  EXPECT_EQ(run(kPast, options).error().code, ErrorCode::kInvalidInput);
  options.sizes = {{"past", 4}};
  const auto found = run(kPast, options);
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->inputs.sizes.at("past"), 4);
}

TEST_F(DrawnRunTest, FindsSizesThatAreOne) {
  EXPECT_TRUE(run("g (float[a] x, float[b] y) => (float[c] z) { z = Add (x, y) }"));
  EXPECT_EQ(run("g (float[a, 3] x, float[b, 4] y) => (float[c, 4] z) { z = Add (x, y) }").error().code,
            ErrorCode::kInvalidInput);
}

TEST_F(DrawnRunTest, AvoidsMasksOfWhichNothingIsLeft) {
  const auto found = run(R"(g (float[2] x, bool[2] masked) => (float[2] p) {
    zero = Constant <value_float = 0.0> () one = Constant <value_float = -1.0> () low = Div (one, zero) s = Where (masked, low, x) p = Softmax (s) })");
  ASSERT_TRUE(found) << found.error().message();
  for (const float value : found->outputs[0].data<float>()) EXPECT_FALSE(std::isnan(value));
}

}  // namespace
}  // namespace attn_opt
