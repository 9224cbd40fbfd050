// Models that runtimes read and ONNX's checker refuses.
#include "src/io/check/repair.h"

#include <onnx/checker.h>

#include "attn_opt/internal/model_walk.h"
#include "tests/io/io_test.h"

namespace attn_opt {
namespace {

using testing::HasSubstr;

using Repair = IoTest;

const std::string kTwice =
    "<ir_version: 8, opset_import: [\"\" : 17]> g (float[2] x) => (y) <float[2] c = {1, 2}, float[1] d = {3}, float[2] c = {4, "
    "5}> "
    "{ s = Add (x, c) y = Mul (s, d) }";

TEST_F(Repair, TheLastOfSeveralInitializersCounts) {
  const auto model = load_text(kTwice);
  ASSERT_TRUE(model);
  ASSERT_EQ(model->proto.graph().initializer_size(), 2);
  EXPECT_EQ(model->proto.graph().initializer(0).name(), "d");
  EXPECT_EQ(model->proto.graph().initializer(1).name(), "c");
  EXPECT_TRUE(check_model(*model));
}

TEST_F(Repair, AnOutputHasTheInferredType) {
  const auto model = load_text(kTwice);
  ASSERT_TRUE(model);
  EXPECT_EQ(model->proto.graph().output(0).type().tensor_type().elem_type(), onnx::TensorProto::FLOAT);
  EXPECT_NO_THROW(onnx::checker::check_model(model->proto));
}

TEST_F(Repair, WhatIsReadAgainIsRepairedToo) {
  const auto model = load_text(kTwice);
  ASSERT_TRUE(model);
  const auto again = as_it_was_read(*model);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->proto.SerializeAsString(), model->proto.SerializeAsString());
}

TEST_F(Repair, WhatIsWrittenUnchangedIsRepaired) {
  const auto model = load_text(kTwice);
  ASSERT_TRUE(model);
  write_file(folder_ / "twice.onnx", [&] {
    onnx::ModelProto twice = model->proto;
    *twice.mutable_graph()->add_initializer() = twice.graph().initializer(1);
    return twice.SerializeAsString();
  }());
  const auto read = load_model(folder_ / "twice.onnx");
  ASSERT_TRUE(read);
  ASSERT_TRUE(copy_model(*read, folder_ / "copy.onnx"));
  onnx::ModelProto copied;
  ASSERT_TRUE(copied.ParseFromString(read_file(folder_ / "copy.onnx")));
  EXPECT_NO_THROW(onnx::checker::check_model(copied));
}

TEST_F(Repair, OtherTypesAndShapesAreLeftToTheChecker) {
  for (const std::string other : {"float[1] c = {4}", "double[2] c = {4, 5}"}) {
    const auto model =
        load_text("<ir_version: 8, opset_import: [\"\" : 17]> g (float[2] x) => (float[2] y) <float[2] c = {1, 2}, " + other +
                  "> { y = Add (x, c) }");
    ASSERT_TRUE(model);
    EXPECT_THAT(input_error(check_model(*model)), HasSubstr("not unique"));
  }
}

TEST_F(Repair, ATypeThatIsNotInferredIsStillWanted) {
  const auto model =
      load_text("<ir_version: 8, opset_import: [\"\" : 17]> g (float[2] x) => (y) { y = com.microsoft.Gelu (x) }");
  ASSERT_TRUE(model);
  EXPECT_THAT(input_error(check_model(*model)), HasSubstr("type"));
}

TEST_F(Repair, TheSpelledOutDomainIsTheDefaultOne) {
  const auto model = load_text(
      "<ir_version: 8, opset_import: [\"\" : 17, \"own\" : 1]> g (bool b, float[2] x) => (float[2] y) {"
      "  a = ai.onnx.Relu (x) c = own.f (a)"
      "  y = ai.onnx.If (b) <then_branch = t () => (float[2] d) { d = ai.onnx.Abs (c) }, else_branch = e () => (float[2] d)"
      "    { d = Neg (c) }> }"
      "<domain: \"own\", opset_import: [\"ai.onnx\" : 17]> f (x) => (y) { y = ai.onnx.Sqrt (x) }");
  ASSERT_TRUE(model);
  EXPECT_TRUE(check_model(*model));
  for_each_node(model->proto, [](const onnx::NodeProto& node) { EXPECT_NE(node.domain(), "ai.onnx") << node.op_type(); });
  EXPECT_EQ(model->proto.functions(0).opset_import(0).domain(), "");
}

TEST_F(Repair, FunctionsOfTheSpelledOutDomainAreLeft) {
  const auto model = load_text(
      "<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnx\" : 17]> g (float[2] x) => (float[2] y) { y = ai.onnx.f (x) }"
      "<domain: \"ai.onnx\", opset_import: [\"\" : 17]> f (x) => (y) { y = Sqrt (x) }");
  ASSERT_TRUE(model);
  EXPECT_EQ(model->proto.graph().node(0).domain(), "ai.onnx");
}

TEST_F(Repair, NothingIsDoneToOthers) {
  auto model = load_text(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[2] x) => (float[2] y) <float[2] c = {1, 2}> { y = Add (x, c) }");
  ASSERT_TRUE(model);
  EXPECT_TRUE(repair(model->proto).empty());
}

}  // namespace
}  // namespace attn_opt
