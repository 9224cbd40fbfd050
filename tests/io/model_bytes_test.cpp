// Models in memory.
#include "attn_opt/model_bytes.h"

#include "tests/io/io_test.h"
#include "tests/text_model.h"

namespace attn_opt {
namespace {

using ::testing::HasSubstr;
using ModelBytes = IoTest;

TEST_F(ModelBytes, ComeBackAsTheyWere) {
  const std::string bytes = read_file(kModels / "bert-ts14s.onnx");
  auto model = parse_model(bytes);
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_TRUE(check_model(*model));
  const auto again = serialize_model(*std::move(model));
  ASSERT_TRUE(again);
  onnx::ModelProto before, after;
  ASSERT_TRUE(before.ParseFromString(bytes) && after.ParseFromString(*again));
  EXPECT_EQ(before.SerializeAsString(), after.SerializeAsString());
}

TEST_F(ModelBytes, KeepExternalEntries) {
  write_file(folder_ / "w.bin", std::string(8, 'x'));
  const onnx::ModelProto proto = model_of_text(external_model("w.bin"));
  auto model = parse_model(proto.SerializeAsString(), folder_);
  ASSERT_TRUE(model) << model.error().message();
  const auto bytes = model->tensors->bytes(model->proto.graph().initializer(0));
  ASSERT_TRUE(bytes) << bytes.error().message();
  EXPECT_EQ(static_cast<char>((*bytes)[0]), 'x');
  const auto again = serialize_model(*std::move(model));
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, proto.SerializeAsString());
}

TEST_F(ModelBytes, ExternalDataIsLookedForInTheFolder) {
  const std::string bytes = model_of_text(external_model("w.bin")).SerializeAsString();
  EXPECT_THAT(error_of(parse_model(bytes, folder_ / "other"), ErrorCode::kInvalidInput), HasSubstr("w"));
}

TEST_F(ModelBytes, OfAModelReadFromAFile) {
  auto model = load_model(kModels / "bert-ts14s.onnx", {.allowed_data_dirs = {}, .min_stripped_bytes = 16});
  ASSERT_TRUE(model);
  const auto bytes = serialize_model(*std::move(model));
  ASSERT_TRUE(bytes);
  onnx::ModelProto before, after;
  ASSERT_TRUE(before.ParseFromString(read_file(kModels / "bert-ts14s.onnx")) && after.ParseFromString(*bytes));
  EXPECT_EQ(before.SerializeAsString(), after.SerializeAsString());
}

TEST_F(ModelBytes, CanBeSavedAndCopied) {
  const std::string bytes = read_file(kModels / "bert-ts14s.onnx");
  auto model = parse_model(bytes, folder_);
  ASSERT_TRUE(model);
  ASSERT_TRUE(copy_model(*model, folder_ / "copy.onnx"));
  EXPECT_EQ(read_file(folder_ / "copy.onnx"), bytes);
  model->proto.set_producer_name("another");
  ASSERT_TRUE(save_model(*model, folder_ / "saved.onnx"));
  const auto saved = load_model(folder_ / "saved.onnx");
  ASSERT_TRUE(saved);
  EXPECT_EQ(saved->proto.producer_name(), "another");
}

TEST_F(ModelBytes, MustBeAModel) {
  EXPECT_THAT(error_of(parse_model(""), ErrorCode::kInvalidInput), HasSubstr("is empty"));
  EXPECT_THAT(error_of(parse_model("no model"), ErrorCode::kInvalidInput), HasSubstr("(memory): "));
}

}  // namespace
}  // namespace attn_opt
