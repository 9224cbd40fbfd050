// What a run leaves as it is: models that cannot be raised or hold no attention, and all around an attention that is fused.
#include "tests/optimizer/optimizer_case.h"

namespace attn_opt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(LeftAsItWas, WhatCannotBeRaised) {
  Model model = attention_in_text(attention_nodes() + "f = RandomNormalLike (like)", ", float[8] like", ", float[8] f", 17);
  const std::string before = model.proto.SerializeAsString();
  const Report report = optimized(model);
  ASSERT_EQ(report.not_raised.size(), 1u);
  EXPECT_THAT(report.not_raised[0], HasSubstr("'f' (RandomNormalLike)"));
  EXPECT_EQ(report.fused(), 0);
  EXPECT_THAT(not_fused(report), ElementsAre("w: opset.raise"));
  EXPECT_FALSE(report.changed);
  EXPECT_EQ(report.opset_after, 17);
  EXPECT_TRUE(report.operators.empty());
  EXPECT_EQ(model.proto.SerializeAsString(), before);
}

TEST(LeftAsItWas, WhatIsNoAttention) {
  Model model = attention_in_text(attention_nodes("", "2"));
  const std::string before = model.proto.SerializeAsString();
  const Report report = optimized(model);
  EXPECT_EQ(report.fused(), 0);
  EXPECT_FALSE(report.changed);
  EXPECT_EQ(report.opset_after, 18) << "raised for nothing";
  EXPECT_EQ(model.proto.SerializeAsString(), before);
}

TEST(LeftAsItWas, WhatDoesNotHoldTogether) {
  Model model = attention_in_text(attention_nodes() + "z = Add (nowhere, y)");
  const std::string before = model.proto.SerializeAsString();
  const auto report = optimize(model, {});
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code, ErrorCode::kInvalidInput);
  EXPECT_EQ(model.proto.SerializeAsString(), before);
}

TEST(Survives, NodesOfUnknownDomains) {
  Model model = attention_in_text("r = other.Rotate <turns = 2> (q) " + attention_nodes() + "z = other.Sink (y, r)", "",
                                  ", float[2,2,5,8] z");
  const std::string rotate = model.proto.graph().node(0).SerializeAsString();
  const std::string sink = model.proto.graph().node(5).SerializeAsString();
  EXPECT_EQ(optimized(model).fused(), 1);
  const auto& nodes = model.proto.graph().node();
  EXPECT_EQ(nodes[0].SerializeAsString(), rotate);
  EXPECT_EQ(nodes[nodes.size() - 1].SerializeAsString(), sink);
  EXPECT_EQ(opset_version(model.proto, "other"), 3);
}

TEST(Survives, AttentionOverWhatUnknownNodesMake) {
  Model model = attention_in_text(R"( qr = other.Rotate (q) kt = Transpose <perm = [0, 1, 3, 2]> (k) s = MatMul (qr, kt)
      w = Softmax <axis = -1> (s) y = MatMul (w, v) )");
  const Report report = optimized(model);
  EXPECT_EQ(count_of(model.proto, "Rotate"), 1);
  EXPECT_EQ(report.fused(), 0) << "the rank of Q is not known";
}

void add_property(google::protobuf::RepeatedPtrField<onnx::StringStringEntryProto>& properties) {
  auto& property = *properties.Add();
  property.set_key("key");
  property.set_value("kept");
}

TEST(Survives, MetadataAndAnnotations) {
  Model model = attention_in_text("a = Abs (q) " + attention_nodes(), "", ", float[2,2,5,8] a");
  auto& proto = model.proto;
  proto.set_producer_name("maker");
  proto.set_doc_string("about");
  add_property(*proto.mutable_metadata_props());
  add_property(*proto.mutable_graph()->mutable_metadata_props());
  add_property(*proto.mutable_graph()->mutable_node(0)->mutable_metadata_props());
  auto& annotation = *proto.mutable_graph()->add_quantization_annotation();
  annotation.set_tensor_name("a");
  add_property(*annotation.mutable_quant_parameter_tensor_names());
  proto.GetReflection()->MutableUnknownFields(&proto)->AddVarint(12345, 678);
  const std::string node = proto.graph().node(0).SerializeAsString();
  const std::string kept = annotation.SerializeAsString();
  EXPECT_EQ(optimized(model).fused(), 1);
  EXPECT_EQ(proto.producer_name(), "maker");
  EXPECT_EQ(proto.doc_string(), "about");
  ASSERT_EQ(proto.metadata_props_size(), 1);
  EXPECT_EQ(proto.metadata_props(0).value(), "kept");
  EXPECT_EQ(proto.graph().metadata_props_size(), 1);
  EXPECT_EQ(proto.graph().node(0).SerializeAsString(), node);
  ASSERT_EQ(proto.graph().quantization_annotation_size(), 1);
  EXPECT_EQ(proto.graph().quantization_annotation(0).SerializeAsString(), kept);
  EXPECT_EQ(proto.GetReflection()->GetUnknownFields(proto).field_count(), 1);
}

constexpr const char* kFunction = R"(
    <domain: "own", opset_import: ["": 18]> Twice (a) => (b) { two = Constant <value_float = 2.0> () b = Mul (a, two) })";

TEST(Survives, Functions) {
  const std::string type = "float[2,2,5,8] ";
  Model model =
      in_memory(model_of_text("<ir_version: 8, opset_import: [\"\": 18, \"own\": 1]> g (" + type + "q, " + type + "k, " + type +
                              "v) => (" + type + "z) {" + attention_nodes() + "z = own.Twice (y) }" + kFunction));
  EXPECT_EQ(optimized(model).fused(), 1);
  ASSERT_EQ(model.proto.functions_size(), 1);
  const auto& function = model.proto.functions(0);
  EXPECT_EQ(function.name(), "Twice");
  EXPECT_EQ(function.node_size(), 2);
  EXPECT_EQ(function.opset_import(0).version(), 24) << "raised with the model";
  expect_valid(model.proto);
}

/// A model of opset 18 whose attention lies in a function of opset OPSET.
Model attention_in_function(int opset) {
  const std::string type = "float[2,2,5,8] ";
  return in_memory(model_of_text("<ir_version: 8, opset_import: [\"\": 18, \"own\": 1]> g (" + type + "q, " + type + "k, " +
                                 type + "v) => (" + type + "z) { z = own.F (q, k, v) }" +
                                 "<domain: \"own\", opset_import: [\"\": " + std::to_string(opset) + "]> F (q, k, v) => (y) {" +
                                 attention_nodes() + "}"));
}

TEST(Survives, AttentionInAFunctionOfAnotherOpset) {
  Model model = attention_in_function(12);
  const std::string before = model.proto.SerializeAsString();
  const Report report = optimized(model);
  EXPECT_EQ(report.fused(), 0);
  EXPECT_EQ(model.proto.SerializeAsString(), before);
}

TEST(Survives, AFunctionThatWasInlinedForNothing) {
  Model model = attention_in_function(18);
  const std::string before = model.proto.SerializeAsString();
  OptimizeOptions options;
  options.stop_after = 0;
  EXPECT_FALSE(optimized(model, options).changed);
  EXPECT_EQ(model.proto.SerializeAsString(), before);
  EXPECT_EQ(optimized(model).fused(), 1);
  EXPECT_EQ(model.proto.functions_size(), 0);
}

TEST(Survives, WhatWasDeadBeforeWhereNothingIsFused) {
  Model model = attention_in_text("dead = Abs (q) " + attention_nodes());
  OptimizeOptions options;
  options.stop_after = 0;
  EXPECT_FALSE(optimized(model, options).changed);
  EXPECT_EQ(spelled(model.proto.graph()).substr(0, 8), "Abs:dead");
  EXPECT_EQ(optimized(model).fused(), 1);
  EXPECT_EQ(spelled(model.proto.graph()).substr(0, 9), "Attention");
}

TEST(Survives, AProbabilityThatIsAnOutput) {
  Model model = attention_in_text(attention_nodes(), "", ", float[2,2,5,5] w");
  optimized(model);
  const auto view = ModelGraph::create(model.proto);
  ASSERT_TRUE(view.has_value());
  EXPECT_NE((*view)->main().find("w")->producer, nullptr);
  expect_valid(model.proto);
}

TEST(Fuses, BesideGroupNormalizationOfOpset18) {
  Model model = attention_in_text(attention_nodes() + "g = GroupNormalization <num_groups = 2> (x, scale, scale)",
                                  ", float[2,6,5] x, float[2] scale", ", float[2,6,5] g", 18);
  EXPECT_TRUE(check_model(model));
  EXPECT_EQ(optimized(model).fused(), 1);
  expect_valid(model.proto);
}

/// As ONNX Runtime saves models: no raise touches its nodes, and the output is accepted as the input is.
TEST(Fuses, BesideOperatorsOfOnnxRuntime) {
  Model model = attention_in_text(
      "n = LayerNormalization <epsilon = 0.01> (x, scale) g = SimplifiedLayerNormalization (n, scale)" + attention_nodes(),
      ", float[2,6] x, float[6] scale", ", float[2,6] g", 14);
  EXPECT_TRUE(check_model(model));
  const std::string normal = model.proto.graph().node(0).SerializeAsString();
  const std::string simplified = model.proto.graph().node(1).SerializeAsString();
  EXPECT_EQ(optimized(model).fused(), 1);
  EXPECT_EQ(opset_version(model.proto), 24);
  EXPECT_EQ(model.proto.graph().node(0).SerializeAsString(), normal);
  EXPECT_EQ(model.proto.graph().node(1).SerializeAsString(), simplified);
  EXPECT_TRUE(check_model(model));
}

TEST(Fuses, InsideBranches) {
  Model model = attention_in_text("y = If (c) <then_branch = t () => (float[2,2,5,8] py) {" + attention_nodes("p") +
                                      "}, else_branch = e () => (float[2,2,5,8] ny) {" + attention_nodes("n") + "}>",
                                  ", bool c");
  const Report report = optimized(model);
  EXPECT_EQ(report.fused(), 2);
  ASSERT_EQ(report.sites.size(), 2u);
  EXPECT_EQ(report.sites[0].graph, "main/y:then_branch");
  EXPECT_EQ(count_of(model.proto, "Attention"), 2);
  expect_valid(model.proto);
}

}  // namespace
}  // namespace attn_opt
