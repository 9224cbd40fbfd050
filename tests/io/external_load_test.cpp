#include <sys/stat.h>

#include "attn_opt/internal/model_walk.h"
#include "tests/io/io_test.h"

namespace attn_opt {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ExternalLoadTest : public IoTest {
 protected:
  ExternalLoadTest() { write_file(folder_ / "w.bin", "0123456789abcdef"); }

  /// The error for a model in folder/ whose external entries are LOCATION and MORE.
  std::string error_for(const std::string& location, const std::string& more = "", const LoadOptions& options = {}) {
    return input_error(load_text(external_model(location, more), options));
  }
};

TEST_F(ExternalLoadTest, BytesComeFromTheFile) {
  const auto model = load_text(external_model("w.bin"));
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(initializer_bytes(*model), "01234567");
  const auto tail = load_text(external_model("./w.bin", R"(, "offset": "8", "length": "8", "checksum": "none")"));
  ASSERT_TRUE(tail) << tail.error().message();
  EXPECT_EQ(initializer_bytes(*tail), "89abcdef");
}

TEST_F(ExternalLoadTest, LocationsInMemoryAreTokensThatTheCheckerAccepts) {
  const auto model = load_text(external_model("w.bin"));
  ASSERT_TRUE(model);
  EXPECT_EQ(model->proto.graph().initializer(0).external_data(0).value(), "#0");
  EXPECT_TRUE(check_model(*model));
}

TEST_F(ExternalLoadTest, RealModelReadsItsWeights) {
  const fs::path folder = kModels / "llama-past-dy18s-extdata";
  const auto model = load_model(folder / "model.onnx");
  ASSERT_TRUE(model) << model.error().message();
  const std::string weights = read_file(folder / "weights.bin");
  size_t external = 0, total = 0;
  for_each_tensor(model->proto, [&](const onnx::TensorProto& tensor) {
    if (tensor.data_location() != onnx::TensorProto::EXTERNAL) return;
    const auto bytes = model->tensors->bytes(tensor);
    ASSERT_TRUE(bytes) << bytes.error().message();
    EXPECT_NE(weights.find(std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size())), std::string::npos);
    ++external;
    total += bytes->size();
  });
  EXPECT_EQ(external, 16u);
  EXPECT_EQ(total, 92160u);
}

TEST_F(ExternalLoadTest, ErrorsNameModelTensorAndReason) {
  EXPECT_THAT(error_for("none.bin"),
              AllOf(HasSubstr("model.onnxtxt: tensor 'w': "), HasSubstr("none.bin"), HasSubstr("No such file or directory")));
}

TEST_F(ExternalLoadTest, RangeMustLieInTheFile) {
  EXPECT_THAT(error_for("w.bin", R"(, "offset": "9")"), HasSubstr("8 bytes from 9, lies beyond the end of 'w.bin' (16 bytes)"));
  EXPECT_THAT(error_for("w.bin", R"(, "offset": "9223372036854775807")"), HasSubstr("beyond the end"));
  EXPECT_THAT(error_for("w.bin", R"(, "length": "12")"), HasSubstr("has 12 bytes; its dimensions and type ask for 8"));
}

TEST_F(ExternalLoadTest, PointersOfGitLfsAreNamed) {
  write_file(folder_ / "w.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:0123456789abcdef\nsize 12345\n");
  const std::string error = error_for("w.bin");
  EXPECT_THAT(error, HasSubstr("w.bin' is a Git LFS pointer"));
  EXPECT_THAT(error, HasSubstr("git lfs pull"));
}

TEST_F(ExternalLoadTest, NumbersMustBeNumbers) {
  for (const char* number : {"-1", "", " 1", "1x", "0x10", "1.0", "9223372036854775808", "99999999999999999999"}) {
    EXPECT_THAT(error_for("w.bin", std::string(R"(, "offset": ")") + number + "\""), HasSubstr("is not a number of bytes"))
        << number;
    EXPECT_THAT(error_for("w.bin", std::string(R"(, "length": ")") + number + "\""), HasSubstr("is not a number of bytes"))
        << number;
  }
  EXPECT_THAT(error_for("w.bin", R"(, "offset": "0", "offset": "8")"), HasSubstr("more than one 'offset'"));
  EXPECT_THAT(error_for("w.bin", R"(, "location": "w.bin")"), HasSubstr("more than one 'location'"));
}

TEST_F(ExternalLoadTest, LocationMustStayInTheFolder) {
  write_file(folder_ / "in" / "keep", "");
  EXPECT_THAT(error_for(""), HasSubstr("has no location"));
  EXPECT_THAT(error_for((folder_ / "w.bin").string()), HasSubstr("is absolute"));
  EXPECT_THAT(error_for("../w.bin"), HasSubstr("contains '..'"));
  EXPECT_THAT(error_for("in/../w.bin"), HasSubstr("contains '..'"));
  EXPECT_THAT(error_for("in"), HasSubstr("is a folder"));
  EXPECT_THAT(error_for("."), HasSubstr("is a folder"));
  ASSERT_TRUE(load_text(external_model("in/..w..bin")).error().message().find("'..'") == std::string::npos);
}

TEST_F(ExternalLoadTest, PipeIsNoDataFile) {
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(error_for("pipe"), HasSubstr("is not a regular file"));
}

TEST_F(ExternalLoadTest, LinkOutOfTheFolderNeedsPermission) {
  // A name that begins like the model's folder is not in it.
  const fs::path model = folder_ / "a" / "m.onnxtxt", outside = folder_ / "ab" / "w.bin";
  write_file(model, external_model("link.bin"));
  write_file(outside, "01234567");
  fs::create_symlink(outside, folder_ / "a" / "link.bin");
  EXPECT_THAT(input_error(load_model(model)),
              AllOf(HasSubstr("leads out of the model's folder"), HasSubstr("--allow-data-dir")));
  EXPECT_TRUE(load_model(model, {.allowed_data_dirs = {folder_ / "ab"}}));
  EXPECT_FALSE(load_model(model, {.allowed_data_dirs = {folder_ / "none", folder_ / "a"}}));
}

TEST_F(ExternalLoadTest, LinkedFolderOutOfTheFolderNeedsPermission) {
  write_file(folder_ / "a" / "m.onnxtxt", external_model("data/w.bin"));
  write_file(folder_ / "b" / "w.bin", "01234567");
  fs::create_directory_symlink(folder_ / "b", folder_ / "a" / "data");
  EXPECT_THAT(input_error(load_model(folder_ / "a" / "m.onnxtxt")), HasSubstr("leads out of the model's folder"));
}

TEST_F(ExternalLoadTest, LinkWithinTheFolderIsFollowed) {
  fs::create_symlink("w.bin", folder_ / "link.bin");
  const auto model = load_text(external_model("link.bin"));
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(initializer_bytes(*model), "01234567");
}

TEST_F(ExternalLoadTest, LinksIntoTheFolderOfTheModelItselfAreFollowed) {
  write_file(folder_ / "blobs" / "1111", external_model("model.data"));
  write_file(folder_ / "blobs" / "2222", "01234567");
  const fs::path snapshot = folder_ / "snapshots" / "main";
  fs::create_directories(snapshot);
  fs::create_symlink("../../blobs/1111", snapshot / "model.onnxtxt");
  fs::create_symlink("../../blobs/2222", snapshot / "model.data");
  const auto model = load_model(snapshot / "model.onnxtxt");
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(initializer_bytes(*model), "01234567");
}

TEST_F(ExternalLoadTest, FileThatChangesBeforeItIsReadIsAnError) {
  const auto model = load_text(external_model("w.bin"));
  ASSERT_TRUE(model);
  write_file(folder_ / "w.bin", "short");
  EXPECT_THAT(initializer_bytes(*model), HasSubstr("was changed while the model was in use"));
}

TEST_F(ExternalLoadTest, TensorsOfNestedGraphsAndFunctionsAreFound) {
  onnx::ModelProto proto;
  proto.set_ir_version(10);
  proto.add_opset_import()->set_version(21);
  const auto make_external = [](onnx::TensorProto* tensor, const std::string& offset) {
    tensor->set_data_type(onnx::TensorProto::FLOAT);
    tensor->add_dims(2);
    tensor->set_data_location(onnx::TensorProto::EXTERNAL);
    for (const auto& [key, value] : {std::pair<std::string, std::string>("location", "w.bin"), {"offset", offset}}) {
      auto* entry = tensor->add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
  };
  auto* branch = proto.mutable_graph()->add_node()->add_attribute()->mutable_g();
  make_external(branch->add_initializer(), "0");
  make_external(proto.add_functions()->add_node()->add_attribute()->mutable_t(), "8");
  write_file(folder_ / "m.onnx", proto.SerializeAsString());
  const auto model = load_model(folder_ / "m.onnx");
  ASSERT_TRUE(model) << model.error().message();
  std::set<std::string> found;
  for_each_tensor(model->proto, [&](const onnx::TensorProto& tensor) {
    const auto bytes = model->tensors->bytes(tensor);
    ASSERT_TRUE(bytes) << bytes.error().message();
    found.emplace(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  });
  EXPECT_THAT(found, testing::ElementsAre("01234567", "89abcdef"));
}

TEST_F(ExternalLoadTest, EmptyTensorNeedsNoBytes) {
  write_file(folder_ / "empty.bin", "");
  const auto model = load_text(add_model(R"(float[0] w = ["location": "empty.bin"])"));
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(initializer_bytes(*model), "");
}

TEST_F(ExternalLoadTest, StringsCannotBeExternal) {
  EXPECT_THAT(input_error(load_text(add_model(R"(string[1] w = ["location": "w.bin"])"))), HasSubstr("has no raw bytes"));
}

}  // namespace
}  // namespace attn_opt
