#include <sys/resource.h>

#include "tests/io/io_test.h"

namespace attn_opt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// While it lives, the process may open a few files only.
class FewDescriptors {
 public:
  FewDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit few = before_;
    few.rlim_cur = 64;
    setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

/// A model in in/ with its data in in/w.bin; outputs go to out/.
class ExternalSaveTest : public IoTest {
 protected:
  ExternalSaveTest() {
    write_file(folder_ / "in" / "w.bin", "01234567");
    fs::create_directory(out());
  }
  fs::path out() const { return folder_ / "out"; }

  /// Saved as in/m.onnx, so that the original is a binary one, and loaded from there.
  Model input(const std::string& location = "w.bin") {
    write_file(folder_ / "in" / "m.onnxtxt", external_model(location, R"(, "offset": "0")"));
    EXPECT_TRUE(save_model(load_model(folder_ / "in" / "m.onnxtxt").value(), folder_ / "in" / "m.onnx"));
    return load_model(folder_ / "in" / "m.onnx").value();
  }
  static std::string location(const fs::path& path) {
    onnx::ModelProto proto;
    EXPECT_TRUE(proto.ParseFromString(read_file(path)));
    return proto.graph().initializer(0).external_data(0).value();
  }
  static std::string bytes_of(const fs::path& path) {
    const auto model = load_model(path);
    return model ? initializer_bytes(*model) : model.error().message();
  }
};

TEST_F(ExternalSaveTest, SameFolderRefersToTheSameFile) {
  const Model model = input();
  ASSERT_TRUE(save_model(model, folder_ / "in" / "o.onnx"));
  EXPECT_TRUE(read_file(folder_ / "in" / "o.onnx") == read_file(folder_ / "in" / "m.onnx"));
  EXPECT_THAT(files_in(folder_ / "in"), ElementsAre("m.onnx", "m.onnxtxt", "o.onnx", "w.bin"));
}

TEST_F(ExternalSaveTest, SameFolderByAnotherNameIsTheSameFolder) {
  fs::create_directory_symlink("in", folder_ / "alias");
  ASSERT_TRUE(save_model(input(), folder_ / "alias" / "o.onnx"));
  EXPECT_EQ(files_in(folder_ / "in").count("o.w.bin"), 0u);
  EXPECT_EQ(bytes_of(folder_ / "in" / "o.onnx"), "01234567");
}

TEST_F(ExternalSaveTest, OtherFolderGetsACopy) {
  for (const auto write : {save_model, copy_model}) {
    ASSERT_TRUE(write(input(), out() / "o.onnx", {}));
    EXPECT_THAT(files_in(out()), ElementsAre("o.onnx", "w.bin"));
    EXPECT_TRUE(read_file(out() / "o.onnx") == read_file(folder_ / "in" / "m.onnx"));
    fs::remove_all(folder_ / "in" / "w.bin");
    EXPECT_EQ(bytes_of(out() / "o.onnx"), "01234567");
    write_file(folder_ / "in" / "w.bin", "01234567");
    fs::remove_all(out());
    fs::create_directory(out());
  }
}

TEST_F(ExternalSaveTest, SubfoldersAreKept) {
  write_file(folder_ / "in" / "data" / "deep" / "w.bin", "deepdeep");
  ASSERT_TRUE(save_model(input("data/deep/w.bin"), out() / "o.onnx"));
  EXPECT_THAT(files_in(out()), ElementsAre("data", "data/deep", "data/deep/w.bin", "o.onnx"));
  EXPECT_EQ(bytes_of(out() / "o.onnx"), "deepdeep");
}

TEST_F(ExternalSaveTest, EqualFileIsUsedAgain) {
  write_file(out() / "w.bin", "01234567");
  const auto written = fs::last_write_time(out() / "w.bin");
  ASSERT_TRUE(save_model(input(), out() / "o.onnx"));
  EXPECT_THAT(files_in(out()), ElementsAre("o.onnx", "w.bin"));
  EXPECT_EQ(fs::last_write_time(out() / "w.bin"), written);
}

TEST_F(ExternalSaveTest, OtherFileOfThatNameIsNeverOverwritten) {
  write_file(out() / "w.bin", "precious");
  for (const auto write : {save_model, copy_model}) {
    ASSERT_TRUE(write(input(), out() / "o.onnx", {}));
    EXPECT_EQ(read_file(out() / "w.bin"), "precious");
    EXPECT_EQ(location(out() / "o.onnx"), "o.w.bin");
    EXPECT_EQ(bytes_of(out() / "o.onnx"), "01234567");
  }
  write_file(out() / "o.w.bin", "precious");
  ASSERT_TRUE(save_model(input(), out() / "o.onnx"));
  EXPECT_EQ(location(out() / "o.onnx"), "o.2.w.bin");
  EXPECT_EQ(bytes_of(out() / "o.onnx"), "01234567");
  EXPECT_EQ(read_file(out() / "o.w.bin"), "precious");
}

TEST_F(ExternalSaveTest, DanglingLinkIsNotWrittenThrough) {
  fs::create_symlink(folder_ / "elsewhere", out() / "w.bin");
  ASSERT_TRUE(save_model(input(), out() / "o.onnx"));
  EXPECT_FALSE(fs::exists(folder_ / "elsewhere"));
  EXPECT_EQ(location(out() / "o.onnx"), "o.w.bin");
}

TEST_F(ExternalSaveTest, DataFileNamedLikeTheOutputGetsAnotherName) {
  const Model model = input();
  ASSERT_TRUE(save_model(model, out() / "w.bin"));
  EXPECT_EQ(location(out() / "w.bin"), "w.w.bin");
  EXPECT_EQ(bytes_of(out() / "w.bin"), "01234567");
}

TEST_F(ExternalSaveTest, OwnDataIsNotOverwritten) {
  const Model model = input();
  for (const auto write : {save_model, copy_model}) {
    EXPECT_THAT(error_of(write(model, folder_ / "in" / "w.bin", {}), ErrorCode::kOutput),
                HasSubstr("holds the model's own external data"));
  }
  EXPECT_EQ(read_file(folder_ / "in" / "w.bin"), "01234567");
}

TEST_F(ExternalSaveTest, FailureRemovesTheCopies) {
  write_file(folder_ / "in" / "data" / "w.bin", "01234567");
  const Model model = input("data/w.bin");
  EXPECT_NE(error_of(save_model(model, out() / "o.onnx", {.max_file_bytes = 10}), ErrorCode::kOutput), "no error");
  EXPECT_THAT(files_in(out()), testing::IsEmpty());
  // What was there before stays.
  write_file(out() / "data" / "w.bin", "01234567");
  EXPECT_NE(error_of(save_model(model, out() / "o.onnx", {.max_file_bytes = 10}), ErrorCode::kOutput), "no error");
  EXPECT_THAT(files_in(out()), ElementsAre("data", "data/w.bin"));
}

TEST_F(ExternalSaveTest, MissingOutputFolderIsNotCreated) {
  EXPECT_THAT(error_of(save_model(input(), folder_ / "none" / "o.onnx"), ErrorCode::kOutput), HasSubstr("does not exist"));
  EXPECT_FALSE(fs::exists(folder_ / "none"));
}

TEST_F(ExternalSaveTest, ManyFilesNeedFewDescriptors) {
  onnx::ModelProto proto = input().proto;
  const onnx::TensorProto tensor = proto.graph().initializer(0);
  for (int i = 0; i < 200; ++i) {
    const std::string name = std::to_string(i);
    write_file(folder_ / "in" / name, "bytes" + std::to_string(100 + i));
    *proto.mutable_graph()->add_initializer() = tensor;
    proto.mutable_graph()->mutable_initializer(i + 1)->set_name(name);
    proto.mutable_graph()->mutable_initializer(i + 1)->mutable_external_data(0)->set_value(name);
  }
  proto.mutable_graph()->mutable_initializer()->DeleteSubrange(0, 1);
  write_file(folder_ / "in" / "many.onnx", proto.SerializeAsString());
  const FewDescriptors limit;
  const auto model = load_model(folder_ / "in" / "many.onnx");
  ASSERT_TRUE(model) << model.error().message();
  for (int i = 0; i < 200; ++i) EXPECT_EQ(initializer_bytes(*model, i), "bytes" + std::to_string(100 + i));
  const auto saved = save_model(*model, out() / "many.onnx");
  EXPECT_TRUE(saved) << saved.error().message();
}

TEST_F(ExternalSaveTest, UnusedDataIsNotCopied) {
  Model model = input();
  model.proto.mutable_graph()->clear_initializer();
  ASSERT_TRUE(save_model(model, out() / "o.onnx"));
  EXPECT_THAT(files_in(out()), ElementsAre("o.onnx"));
}

TEST_F(ExternalSaveTest, TokenMayMoveWithItsTensor) {
  Model model = input();
  auto* constant = model.proto.mutable_graph()->add_node()->add_attribute()->mutable_t();
  *constant = model.proto.graph().initializer(0);
  ASSERT_TRUE(save_model(model, out() / "o.onnx"));
  onnx::ModelProto saved;
  ASSERT_TRUE(saved.ParseFromString(read_file(out() / "o.onnx")));
  EXPECT_EQ(saved.graph().node(1).attribute(0).t().external_data(0).value(), "w.bin");
  EXPECT_EQ(model.proto.graph().initializer(0).external_data(0).value(), "#0");
}

TEST_F(ExternalSaveTest, TextKeepsExternalData) {
  ASSERT_TRUE(save_model(input(), out() / "o.onnxtxt"));
  EXPECT_EQ(bytes_of(out() / "o.onnxtxt"), "01234567");
  EXPECT_THAT(read_file(out() / "o.onnxtxt"), HasSubstr(R"("location": "w.bin")"));
}

TEST_F(ExternalSaveTest, InPlaceKeepsTheData) {
  Model model = input();
  model.proto.set_producer_name("changed");
  ASSERT_TRUE(save_model(model, folder_ / "in" / "m.onnx"));
  EXPECT_EQ(bytes_of(folder_ / "in" / "m.onnx"), "01234567");
}

}  // namespace
}  // namespace attn_opt
