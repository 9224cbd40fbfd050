// Models with operators that ONNX Runtime has in the domain of ONNX.
#include "src/io/check/runtime_operators.h"

#include "src/io/check/full_check.h"
#include "tests/io/io_test.h"

namespace attn_opt {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsNull;
using testing::Not;
using testing::NotNull;

class RuntimeOperators : public IoTest {
 protected:
  /// A model of NODES that make y of x and s, of OPSET.
  Expected<Model> model_of(const std::string& nodes, int opset, const std::string& functions = "") {
    return load_text("<ir_version: 8, opset_import: [\"\" : " + std::to_string(opset) +
                     ", \"own\" : 1]> g (float[2,4] x, float[4] s) => (float[2,4] y) {" + nodes + "}" + functions);
  }

  bool accepts(const std::string& nodes, int opset, const std::string& functions = "") {
    const auto model = model_of(nodes, opset, functions);
    if (!model) return false;
    const auto valid = check_model(*model);
    return valid.has_value();
  }

  std::string refusal(const std::string& nodes, int opset, const std::string& functions = "") {
    const auto model = model_of(nodes, opset, functions);
    return model ? input_error(check_model(*model)) : model.error().message();
  }
};

TEST_F(RuntimeOperators, AreAcceptedWhereOnnxRuntimeHasThem) {
  EXPECT_TRUE(accepts("y = LayerNormalization <axis = -1, epsilon = 1e-12> (x, s, s)", 11));
  EXPECT_TRUE(accepts("y, m, v = LayerNormalization (x, s)", 16));
  EXPECT_TRUE(accepts("y = SimplifiedLayerNormalization (x, s)", 14));
  EXPECT_TRUE(accepts("y, v = SimplifiedLayerNormalization <stash_type = 1> (x, s)", 24));
  EXPECT_TRUE(accepts("a = MemcpyToHost (x) y = MemcpyFromHost (a)", 24));
  EXPECT_TRUE(accepts("y = ThresholdedRelu (x)", 9));
  EXPECT_TRUE(accepts("y = MeanVarianceNormalization <across_channels = 1> (x)", 8));
}

TEST_F(RuntimeOperators, AreHeldAgainstTheirForm) {
  EXPECT_THAT(refusal("y = SimplifiedLayerNormalization (x)", 14),
              AllOf(HasSubstr("is not valid ONNX"), HasSubstr("input size 1")));
  EXPECT_THAT(refusal("y = LayerNormalization <epsilom = 1.0> (x, s)", 14), HasSubstr("epsilom"));
  EXPECT_THAT(refusal("y = LayerNormalization <axis = 0.5> (x, s)", 14), HasSubstr("axis"));
  EXPECT_THAT(refusal("y = PyramidROIAlign_TRT <pooled_size = 7> (x, x, x, x, x)", 18), HasSubstr("plugin_version"));
}

TEST_F(RuntimeOperators, OfAWrongFormAreToldOfByTheFullCheck) {
  const auto right = model_of("y = SimplifiedLayerNormalization (x, s)", 14),
             wrong = model_of("y = SimplifiedLayerNormalization (x)", 14);
  EXPECT_EQ(full_check(right->proto), "");
  EXPECT_THAT(full_check(wrong->proto), HasSubstr("SimplifiedLayerNormalization"));
}

TEST_F(RuntimeOperators, LeaveTheRestToTheChecker) {
  EXPECT_THAT(refusal("z = SimplifiedLayerNormalization (x, s) y = Add (z, nowhere)", 14), HasSubstr("'nowhere'"));
  EXPECT_THAT(refusal("y = RMSNormalization (x, s)", 14), HasSubstr("No Op registered for RMSNormalization"));
  EXPECT_THAT(refusal("z = SimplifiedLayerNormalization (x, s) y = Simplified (z)", 14),
              HasSubstr("No Op registered for Simplified "));
  EXPECT_THAT(refusal("y = LayerNormalization (x)", 17), HasSubstr("input size 1"));
}

TEST_F(RuntimeOperators, AreFoundInBodiesAndFunctions) {
  EXPECT_TRUE(
      accepts("c = Constant <value = bool {1}> () y = If (c) <"
              "then_branch = t () => (float[2,4] a) { a = LayerNormalization (x, s) }, "
              "else_branch = e () => (float[2,4] b) { b = SimplifiedLayerNormalization (x, s) }>",
              14));
  const std::string body = "]> F (x, s) => (y) { y = LayerNormalization <epsilon = 0.5> (x, s) }";
  EXPECT_TRUE(accepts("y = own.F (x, s)", 14, "<domain: \"own\", opset_import: [\"\" : 14" + body));
  EXPECT_TRUE(
      accepts("z = own.F (x, s) y = LayerNormalization (z, s)", 18, "<domain: \"own\", opset_import: [\"\" : 18" + body));
  EXPECT_THAT(refusal("y = own.F (x, s)", 14,
                      "<domain: \"own\", opset_import: [\"\" : 14]> F (x, s) => (y) { y = LayerNormalization (x) }"),
              HasSubstr("input size 1"));
}

TEST_F(RuntimeOperators, OfTheOtherSpellingOfTheDomain) {
  EXPECT_TRUE(accepts("y = ai.onnx.SimplifiedLayerNormalization (x, s)", 14));
}

TEST_F(RuntimeOperators, OnlyModelsWithThemAreCopied) {
  const auto standard = model_of("y = LayerNormalization (x, s)", 17);
  ASSERT_TRUE(standard);
  EXPECT_FALSE(without_runtime_operators(standard->proto));
  const auto saved = model_of("y = LayerNormalization (x, s)", 16);
  ASSERT_TRUE(saved);
  const auto rest = without_runtime_operators(saved->proto);
  ASSERT_TRUE(rest);
  EXPECT_THAT(rest->graph().node(0).domain(), Not(""));
  EXPECT_EQ(saved->proto.graph().node(0).domain(), "");
}

TEST_F(RuntimeOperators, HaveSchemasBesideThoseOfOnnx) {
  ASSERT_THAT(find_schema("LayerNormalization", 16, ""), NotNull());
  EXPECT_EQ(find_schema("LayerNormalization", 16, "")->SinceVersion(), 1);
  EXPECT_EQ(find_schema("LayerNormalization", 17, "")->SinceVersion(), 17);
  EXPECT_EQ(find_schema("SimplifiedLayerNormalization", 25, "")->SinceVersion(), 1);
  EXPECT_THAT(find_schema("SimplifiedLayerNormalization", 14, "com.microsoft"), IsNull());
  EXPECT_THAT(find_schema("Nothing", 14, ""), IsNull());
}

}  // namespace
}  // namespace attn_opt
