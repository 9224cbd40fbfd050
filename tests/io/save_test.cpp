#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "attn_opt/internal/model_walk.h"
#include "tests/io/io_test.h"

namespace attn_opt {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

class SaveTest : public IoTest {
 protected:
  Model small() { return load_text(add_model("float[2] w = {1, 2}")).value(); }
  static std::string output_error(const Status& status) { return error_of(status, ErrorCode::kOutput); }
};

class RoundTripTest : public SaveTest, public testing::WithParamInterface<const char*> {};

TEST_P(RoundTripTest, KeepsEveryByte) {
  const fs::path input = kModels / GetParam();
  const auto model = load_model(input);
  ASSERT_TRUE(model) << model.error().message();
  fs::create_directory(folder_ / "out");
  const fs::path output = folder_ / "out" / input.filename();
  ASSERT_TRUE(save_model(*model, output));
  EXPECT_TRUE(read_file(output) == read_file(input));
  const fs::path copy = folder_ / "out" / "copy.onnx";
  ASSERT_TRUE(copy_model(*model, copy));
  EXPECT_TRUE(read_file(copy) == read_file(input));
}

INSTANTIATE_TEST_SUITE_P(Models, RoundTripTest,
                         testing::Values("bert-ts14s.onnx", "llama-past-ts17s.onnx", "opt-t5-decoder_model_merged.onnx",
                                         "llama-past-dy18s-extdata/model.onnx"));

class TextRoundTripTest : public SaveTest, public testing::WithParamInterface<const char*> {};

/// The text form of a value or tensor has typed fields and no documentation: compare what it does hold.
std::vector<std::string> outline(const onnx::ModelProto& model) {
  std::vector<std::string> lines;
  for_each_node(model, [&lines](const onnx::NodeProto& node) {
    std::string line = node.op_type() + " " + node.domain();
    for (const auto& input : node.input()) line += " " + input;
    for (const auto& output : node.output()) line += " > " + output;
    lines.push_back(line);
  });
  for_each_tensor(model, [&lines](const onnx::TensorProto& tensor) {
    lines.push_back(tensor.name() + ":" + std::to_string(tensor.data_type()) + ":" + std::to_string(tensor.dims_size()));
  });
  return lines;
}

TEST_P(TextRoundTripTest, TextReadsBackAsTheSameModel) {
  const auto model = load_model(kModels / GetParam());
  ASSERT_TRUE(model);
  ASSERT_TRUE(save_model(*model, folder_ / "a.onnxtxt"));
  const auto again = load_model(folder_ / "a.onnxtxt");
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(outline(again->proto), outline(model->proto));
  EXPECT_TRUE(check_model(*again));
  ASSERT_TRUE(save_model(*again, folder_ / "b.onnxtxt"));
  EXPECT_TRUE(read_file(folder_ / "a.onnxtxt") == read_file(folder_ / "b.onnxtxt"));
}

INSTANTIATE_TEST_SUITE_P(Models, TextRoundTripTest,
                         testing::Values("bert-ts14s.onnx", "llama-past-ts17s.onnx", "opt-t5-decoder_model_merged.onnx"));

TEST_F(SaveTest, TextRefusesWhatItCannotHold) {
  Model model = small();
  model.proto.mutable_graph()->add_sparse_initializer();
  EXPECT_THAT(output_error(save_model(model, folder_ / "a.onnxtxt")), HasSubstr("a sparse initializer"));
  model = small();
  auto* packed = model.proto.mutable_graph()->mutable_initializer(0);
  packed->clear_float_data();
  packed->set_data_type(onnx::TensorProto::INT4);
  packed->set_raw_data("x");
  EXPECT_THAT(output_error(save_model(model, folder_ / "a.onnxtxt")), HasSubstr("cannot be written as text"));
  model = small();
  onnx::AttributeProto& slope = *model.proto.add_functions()->add_attribute_proto();
  slope.set_name("slope");
  slope.set_type(onnx::AttributeProto::FLOAT);
  EXPECT_THAT(output_error(save_model(model, folder_ / "a.onnxtxt")), HasSubstr("attributes of the function"));
  EXPECT_FALSE(fs::exists(folder_ / "a.onnxtxt"));
}

TEST_F(SaveTest, CopyIntoTheOtherFormatConverts) {
  const Model model = small();
  ASSERT_TRUE(copy_model(model, folder_ / "a.onnx"));
  const auto binary = load_model(folder_ / "a.onnx");
  ASSERT_TRUE(binary);
  EXPECT_EQ(binary->proto.SerializeAsString(), model.proto.SerializeAsString());
  ASSERT_TRUE(copy_model(model, folder_ / "b.onnxtxt"));
  EXPECT_EQ(read_file(folder_ / "b.onnxtxt"), read_file(folder_ / "model.onnxtxt"));
}

TEST_F(SaveTest, OutputMayBeTheInput) {
  const fs::path path = folder_ / "m.onnx";
  fs::copy_file(kModels / "bert-ts14s.onnx", path);
  fs::permissions(path, fs::perms(0640));
  auto model = load_model(path);
  ASSERT_TRUE(model);
  const std::string before = read_file(path);
  EXPECT_TRUE(copy_model(*model, path));
  EXPECT_TRUE(read_file(path) == before);
  model->proto.set_producer_name("changed");
  ASSERT_TRUE(save_model(*model, path));
  EXPECT_EQ(load_model(path)->proto.producer_name(), "changed");
  EXPECT_EQ(fs::status(path).permissions(), fs::perms(0640));
  EXPECT_THAT(files_in(folder_), testing::ElementsAre("m.onnx"));
}

TEST_F(SaveTest, LinkAtTheOutputIsReplacedNotFollowed) {
  fs::copy_file(kModels / "bert-ts14s.onnx", folder_ / "blob");
  fs::create_symlink("blob", folder_ / "m.onnx");
  auto model = load_model(folder_ / "m.onnx");
  ASSERT_TRUE(model);
  model->proto.set_producer_name("changed");
  ASSERT_TRUE(save_model(*model, folder_ / "m.onnx"));
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(folder_ / "m.onnx")));
  EXPECT_TRUE(read_file(folder_ / "blob") == read_file(kModels / "bert-ts14s.onnx"));
  EXPECT_EQ(load_model(folder_ / "m.onnx")->proto.producer_name(), "changed");
}

TEST_F(SaveTest, NewFileHasTheUsualPermissions) {
  const mode_t mask = umask(027);
  const auto saved = save_model(small(), folder_ / "m.onnx");
  umask(mask);
  ASSERT_TRUE(saved);
  EXPECT_EQ(fs::status(folder_ / "m.onnx").permissions(), fs::perms(0640));
}

TEST_F(SaveTest, OutputThatCannotBeWrittenIsSaidAndLeavesNothing) {
  const Model model = small();
  fs::create_directory(folder_ / "folder");
  write_file(folder_ / "file", "");
  const auto before = files_in(folder_);
  EXPECT_THAT(output_error(save_model(model, folder_ / "folder")), EndsWith("is a folder, not a file"));
  EXPECT_THAT(output_error(save_model(model, folder_ / "none" / "m.onnx")), EndsWith("none' makes it"));
  EXPECT_THAT(output_error(save_model(model, folder_ / "file" / "m.onnx")), EndsWith("Not a directory"));
  EXPECT_NE(output_error(save_model(model, folder_ / std::string(5000, 'x'))), "no error");
  EXPECT_NE(output_error(save_model(model, "/proc/attn-opt-none.onnx")), "no error");
  EXPECT_NE(output_error(copy_model(model, folder_ / "none" / "m.onnxtxt")), "no error");
  EXPECT_EQ(files_in(folder_), before);
}

TEST_F(SaveTest, FolderWithoutPermissionIsSaid) {
  const Model model = small();
  fs::permissions(folder_, fs::perms(0500));
  const OrdinaryUser user;
  EXPECT_THAT(output_error(save_model(model, folder_ / "m.onnx")), EndsWith("Permission denied"));
  EXPECT_THAT(output_error(copy_model(model, folder_ / "m.onnxtxt")), EndsWith("Permission denied"));
}

TEST_F(SaveTest, FullDeviceIsAnError) {
  if (!fs::exists("/dev/full")) GTEST_SKIP();
  EXPECT_THAT(output_error(save_model(small(), "/dev/full")), EndsWith("No space left on device"));
  EXPECT_THAT(output_error(copy_model(*load_model(kModels / "bert-ts14s.onnx"), "/dev/full")),
              EndsWith("No space left on device"));
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(SaveTest, TooLargeForOneFileIsAnErrorAndKeepsTheOldFile) {
  write_file(folder_ / "m.onnx", "old");
  const std::string error = output_error(save_model(small(), folder_ / "m.onnx", {.max_file_bytes = 10}));
  EXPECT_THAT(error, HasSubstr("one file holds at most 10"));
  EXPECT_EQ(read_file(folder_ / "m.onnx"), "old");
  EXPECT_EQ(files_in(folder_).size(), 2u);
}

/// Runs ACTION with standard input from INPUT and returns what it wrote to standard output.
std::string with_standard_streams(const fs::path& input, const std::function<void()>& action) {
  const int saved_in = dup(STDIN_FILENO), saved_out = dup(STDOUT_FILENO);
  int out[2];
  EXPECT_EQ(pipe(out), 0);
  const int in = open(input.c_str(), O_RDONLY);
  dup2(in, STDIN_FILENO);
  dup2(out[1], STDOUT_FILENO);
  close(in);
  close(out[1]);
  std::string received;
  std::thread reader([&received, from = out[0]] {
    char chunk[4096];
    for (ssize_t count; (count = read(from, chunk, sizeof chunk)) > 0;) received.append(chunk, count);
  });
  action();
  dup2(saved_in, STDIN_FILENO);
  dup2(saved_out, STDOUT_FILENO);
  close(saved_in);
  close(saved_out);
  reader.join();
  close(out[0]);
  return received;
}

TEST_F(SaveTest, StandardInputAndOutput) {
  const fs::path input = kModels / "bert-ts14s.onnx";
  for (const auto write : {save_model, copy_model}) {
    const std::string received = with_standard_streams(input, [write] {
      const auto model = load_model("-");
      EXPECT_TRUE(model && write(*model, "-", {}));
    });
    EXPECT_TRUE(received == read_file(input));
  }
  std::string error;
  with_standard_streams("/dev/null", [&error] { error = input_error(load_model("-")); });
  EXPECT_EQ(error, "standard input: is empty");
}

}  // namespace
}  // namespace attn_opt
