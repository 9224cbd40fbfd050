#include "src/optimizer/model_verification.h"

#include <gtest/gtest.h>
#include <onnx/defs/parser.h>

namespace attn_opt {
namespace {

onnx::ModelProto model(const std::string& body) {
  onnx::ModelProto proto;
  const std::string text = "<ir_version: 8, opset_import: [\"\" : 18]>\ng (float[n, 2] x) => (float[n, 2] y) {" + body + "}";
  EXPECT_TRUE(onnx::OnnxParser::Parse(proto, text.c_str()).IsOK()) << text;
  return proto;
}

ModelVerification verified(const std::string& before, const std::string& after, bool assumes_rows_keep_a_key = false,
                           const ModelTrial& trial = {}) {
  const auto result = verify_model(model(before), model(after), inline_tensors(), trial, assumes_rows_keep_a_key);
  EXPECT_TRUE(result) << result.error().message();
  return result.value_or(ModelVerification());
}

TEST(ModelVerification, FindsModelsAlike) {
  const auto result = verified("y = Add (x, x)", "c = Constant <value_float = 2.0> () y = Mul (x, c)");
  ASSERT_EQ(result.outputs.size(), 1u);
  EXPECT_TRUE(result.outputs[0].agrees);
  EXPECT_EQ(result.outputs[0].name, "y");
  EXPECT_EQ(result.runs, 3);
}

TEST(ModelVerification, FindsTheDifference) {
  const std::string off = "c = Constant <value_float = 2.1> () y = Mul (x, c)";
  EXPECT_FALSE(verified("y = Add (x, x)", off).outputs[0].agrees);
  ModelTrial trial;
  trial.relative = 0.1;
  EXPECT_TRUE(verified("y = Add (x, x)", off, false, trial).outputs[0].agrees);
}

TEST(ModelVerification, NanMayBecomeANumberOnlyWhereThatIsAssumed) {
  const std::string nan = "z = Sub (x, x) y = Div (z, z)", number = "y = Sub (x, x)";
  EXPECT_FALSE(verified(nan, number).outputs[0].agrees);
  EXPECT_TRUE(verified(nan, number, true).outputs[0].agrees);
  EXPECT_FALSE(verified(number, nan, true).outputs[0].agrees);
}

TEST(ModelVerification, FloatsOfHalvesMayDifferAsHalvesDo) {
  const std::string factor = "f = Constant <value_float = ", half = "> () h = Cast <to = 10> (x) g = Cast <to = 10> (f)";
  const std::string product = " p = Mul (h, g) y = Cast <to = 1> (p)";
  const std::string of_halves = half + product, wide = "> () g = Cast <to = 10> (f) w = Cast <to = 1> (g) y = Mul (x, w)";
  EXPECT_TRUE(verified(factor + "1.0" + of_halves, factor + "1.005" + of_halves).outputs[0].agrees);
  EXPECT_FALSE(verified(factor + "1.0" + of_halves, factor + "1.1" + of_halves).outputs[0].agrees);
  // A weight of halves that is cast up is the same number in each run.
  EXPECT_FALSE(verified(factor + "1.0" + wide, factor + "1.005" + wide).outputs[0].agrees);
}

TEST(ModelVerification, AnUnsupportedOperatorIsNamed) {
  auto proto = model("y = Add (x, x)");
  proto.mutable_graph()->mutable_node(0)->set_op_type("Mystery");
  const auto result = verify_model(proto, proto, inline_tensors(), {}, false);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace attn_opt
