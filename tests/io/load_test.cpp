#include <sys/stat.h>

#include <thread>

#include "tests/io/io_test.h"

namespace attn_opt {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class LoadTest : public IoTest {
 protected:
  Expected<Model> load_bytes(const std::string& bytes) {
    write_file(folder_ / "m.onnx", bytes);
    return load_model(folder_ / "m.onnx");
  }
};

TEST_F(LoadTest, MissingFileNamesItAndTheReason) {
  EXPECT_EQ(input_error(load_model(folder_ / "none.onnx")),
            (folder_ / "none.onnx").string() + ": cannot be opened: No such file or directory");
}

TEST_F(LoadTest, FolderIsRefused) { EXPECT_THAT(input_error(load_model(folder_)), EndsWith("is a folder, not a file")); }

TEST_F(LoadTest, LinkToItselfIsRefused) {
  fs::create_symlink("loop.onnx", folder_ / "loop.onnx");
  EXPECT_THAT(input_error(load_model(folder_ / "loop.onnx")), HasSubstr("cannot be opened"));
}

TEST_F(LoadTest, UnreadableFileIsRefused) {
  write_file(folder_ / "m.onnx", "x");
  fs::permissions(folder_ / "m.onnx", fs::perms::none);
  const OrdinaryUser user;
  EXPECT_THAT(input_error(load_model(folder_ / "m.onnx")), EndsWith("Permission denied"));
}

TEST_F(LoadTest, EmptyFileIsRefused) { EXPECT_THAT(input_error(load_bytes("")), EndsWith("is empty")); }

std::string text_model(const std::string& nodes) {
  return "<ir_version: 8, opset_import: [\"\" : 17]>\nm (float[2] x, bool c) => (float[2] y) {\n" + nodes + "}\n";
}

std::vector<std::string> operators_of(const Model& model) {
  std::vector<std::string> operators;
  for (const auto& node : model.proto.graph().node()) operators.push_back(node.op_type());
  return operators;
}

TEST_F(LoadTest, NodesAreSortedAsRuntimesDo) {
  write_file(folder_ / "m.onnxtxt", text_model("y = Neg (b)\nb = Abs (a)\nunread = Cos (x)\na = Sin (x)\n"));
  const auto model = load_model(folder_ / "m.onnxtxt");
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_THAT(operators_of(*model), testing::ElementsAre("Cos", "Sin", "Abs", "Neg"));
  EXPECT_TRUE(check_model(*model));
}

TEST_F(LoadTest, WhatABodyReadsStandsAboveIt) {
  write_file(folder_ / "m.onnxtxt", text_model("y = If (c) <then_branch = t () => (float[2] p) { p = Neg (q)\n q = Abs (a) },\n"
                                               "  else_branch = e () => (float[2] r) { r = Identity (a) }>\na = Sin (x)\n"));
  const auto model = load_model(folder_ / "m.onnxtxt");
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_THAT(operators_of(*model), testing::ElementsAre("Sin", "If"));
  EXPECT_TRUE(check_model(*model));
}

TEST_F(LoadTest, NodesThatWaitForEachOtherAreRefused) {
  write_file(folder_ / "m.onnxtxt", text_model("y = Add (a, x)\na = Neg (b)\nb = Neg (a)\n"));
  const auto model = load_model(folder_ / "m.onnxtxt");
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_THAT(operators_of(*model), testing::ElementsAre("Add", "Neg", "Neg"));
  EXPECT_FALSE(check_model(*model));
}

TEST_F(LoadTest, EveryTruncationIsAnError) {
  const std::string whole = read_file(kModels / "bert-ts14s.onnx");
  for (size_t size = 0; size < whole.size(); size += 997) {
    const auto model = load_bytes(whole.substr(0, size));
    EXPECT_NE(input_error(model), "no error") << size;
  }
  EXPECT_THAT(input_error(load_bytes(whole.substr(0, whole.size() / 2))), HasSubstr("is truncated"));
}

TEST_F(LoadTest, OtherFilesAreNotOnnx) {
  EXPECT_THAT(input_error(load_bytes("hello world")), HasSubstr("is not an ONNX model"));
  EXPECT_THAT(input_error(load_bytes(std::string("\x7f"
                                                 "ELF\2\1\1\0",
                                                 8))),
              HasSubstr("is not an ONNX model"));
  EXPECT_THAT(input_error(load_bytes(std::string(4096, '\0'))), HasSubstr("is not an ONNX model"));
  EXPECT_THAT(input_error(load_bytes(std::string(4096, '\xff'))), HasSubstr("is not an ONNX model"));
}

TEST_F(LoadTest, MessagesThatAreNoModelAreRefused) {
  onnx::ModelProto proto;
  proto.set_producer_name("nobody");
  EXPECT_THAT(input_error(load_bytes(proto.SerializeAsString())), EndsWith("it has no graph"));
  proto.mutable_graph()->set_name("g");
  EXPECT_THAT(input_error(load_bytes(proto.SerializeAsString())), EndsWith("it has no ir_version"));
  proto.set_ir_version(8);
  EXPECT_THAT(input_error(load_bytes(proto.SerializeAsString())), EndsWith("it has no opset_import"));
  proto.add_opset_import()->set_version(17);
  EXPECT_TRUE(load_bytes(proto.SerializeAsString()));
}

onnx::ModelProto nested(int levels) {
  onnx::ModelProto proto;
  proto.set_ir_version(8);
  proto.add_opset_import()->set_version(17);
  onnx::GraphProto* graph = proto.mutable_graph();
  for (int i = 0; i < levels; ++i) graph = graph->add_node()->add_attribute()->mutable_g();
  return proto;
}

TEST_F(LoadTest, NestingIsLimited) {
  EXPECT_TRUE(load_bytes(nested(30).SerializeAsString()));
  const std::string error = error_of(load_bytes(nested(2000).SerializeAsString()), ErrorCode::kLimit);
  EXPECT_THAT(error, HasSubstr("nested deeper"));
}

TEST_F(LoadTest, NestedTypesAreLimited) {
  onnx::TypeProto type;
  for (int i = 0; i < 500; ++i) {
    onnx::TypeProto outer;
    outer.mutable_sequence_type()->mutable_elem_type()->Swap(&type);
    type.Swap(&outer);
  }
  onnx::ModelProto proto = nested(0);
  proto.mutable_graph()->add_input()->mutable_type()->Swap(&type);
  EXPECT_THAT(error_of(load_bytes(proto.SerializeAsString()), ErrorCode::kLimit), HasSubstr("nested deeper"));
}

TEST_F(LoadTest, TextErrorsHaveLineAndColumn) {
  const std::string text = "<ir_version: 10, opset_import: [\"\" : 21]>\ng (float[2] x) => (float[2] y) {\n  y = Add (x, \n}";
  EXPECT_THAT(input_error(load_text(text)), AllOf(HasSubstr("line 4, column 1: "), HasSubstr("Expected character )")));
  EXPECT_THAT(input_error(load_text(add_model("float[2] w = {1, 2}") + " more")), HasSubstr("line 2"));
  EXPECT_THAT(input_error(load_text("g (float x) => (float y) { y = Neg (x) }")), EndsWith("it has no ir_version"));
  EXPECT_NE(input_error(load_text(add_model("float[99999999999999999999] w = {1, 2}"))), "no error");
}

TEST_F(LoadTest, DeepTextIsLimited) {
  const std::string text = add_model("float[2] w = {1, 2}") + "\n# ((((((((((((((((((((((((((((((((((((((((((((\n";
  EXPECT_TRUE(load_text(text));
  std::string type;
  for (int i = 0; i < 200000; ++i) type += "seq(";
  EXPECT_THAT(error_of(load_text("<ir_version: 10>\ng (" + type), ErrorCode::kLimit), HasSubstr("line 2: brackets"));
}

TEST_F(LoadTest, PipeIsReadToItsEnd) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const std::string bytes = read_file(kModels / "bert-ts14s.onnx");
  std::thread writer([&] { write_file(pipe, bytes); });
  const auto model = load_model(pipe);
  writer.join();
  ASSERT_TRUE(model) << model.error().message();
  ASSERT_TRUE(save_model(*model, folder_ / "m.onnx"));
  EXPECT_TRUE(read_file(folder_ / "m.onnx") == bytes);
}

TEST_F(LoadTest, CheckerSpeaksOnOneLine) {
  const auto good = load_text(add_model("float[2] w = {1, 2}"));
  ASSERT_TRUE(good);
  EXPECT_TRUE(check_model(*good));
  const auto bad = load_text(R"(<ir_version: 10, opset_import: ["" : 21]>
g (float[2] x) => (float[2] y) { y = Add (x, nowhere) })");
  ASSERT_TRUE(bad);
  EXPECT_THAT(input_error(check_model(*bad)),
              AllOf(StartsWith(folder_.string()), HasSubstr("is not valid ONNX"), HasSubstr("'nowhere'")));
}

TEST_F(LoadTest, AMisspeltNameIsAnsweredWithTheNearest) {
  const auto error_for = [this](const std::string& nodes) {
    const auto model = load_text("<ir_version: 10, opset_import: [\"\" : 21]> g (float[2] x) => (float[2] y) {" + nodes + "}");
    EXPECT_TRUE(model);
    return input_error(check_model(*model));
  };
  EXPECT_THAT(error_for("product = Neg (x) y = Exp (prodct)"),
              HasSubstr("is not valid ONNX: Exp reads 'prodct', which nothing makes; did you mean 'product'?"));
  EXPECT_THAT(error_for("y = Add (x, nowhere)"), ::testing::EndsWith("Add reads 'nowhere', which nothing makes"));
}

/// Runtimes run it, though ONNX deprecated it together with its release.
TEST_F(LoadTest, CheckerAcceptsGroupNormalizationOfOpset18) {
  const std::string head = R"(<ir_version: 8, opset_import: ["" : 18]> g (float[2,4] x, float[2] s) => (float[2,4] y) {)";
  const auto good = load_text(head + "y = GroupNormalization <num_groups = 2> (x, s, s) }");
  ASSERT_TRUE(good);
  EXPECT_TRUE(check_model(*good));
  const auto bad = load_text(head + "z = GroupNormalization <num_groups = 2> (x, s, s) y = Add (z, nowhere) }");
  ASSERT_TRUE(bad);
  EXPECT_THAT(input_error(check_model(*bad)), HasSubstr("'nowhere'"));
}

TEST_F(LoadTest, CheckerAcceptsExternalData) {
  const auto model = load_model(kModels / "llama-past-dy18s-extdata" / "model.onnx");
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_TRUE(check_model(*model));
}

TEST_F(LoadTest, OpsetVersionTakesBothNamesOfTheDefaultDomain) {
  onnx::ModelProto proto;
  EXPECT_EQ(opset_version(proto), 0);
  auto* import = proto.add_opset_import();
  import->set_domain("ai.onnx");
  import->set_version(17);
  EXPECT_EQ(opset_version(proto), 17);
  EXPECT_EQ(opset_version(proto, "ai.onnx"), 17);
  EXPECT_EQ(opset_version(proto, "com.microsoft"), 0);
}

}  // namespace
}  // namespace attn_opt
