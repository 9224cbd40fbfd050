#include "tests/io/io_test.h"

namespace attn_opt {
namespace {

using testing::HasSubstr;

class TensorBytesTest : public IoTest {
 protected:
  static onnx::TensorProto tensor(int type, const std::vector<int64_t>& dims, const std::string& raw) {
    onnx::TensorProto proto;
    proto.set_data_type(type);
    for (const int64_t dim : dims) proto.add_dims(dim);
    proto.set_raw_data(raw);
    return proto;
  }
  static Expected<size_t> size(const onnx::TensorProto& proto) {
    return inline_tensors().bytes(proto).map([](auto bytes) { return bytes.size(); });
  }
};

TEST_F(TensorBytesTest, RawBytesMustBeWhatDimsAndTypeAskFor) {
  EXPECT_EQ(size(tensor(onnx::TensorProto::FLOAT, {2, 3}, std::string(24, 'x'))), 24u);
  EXPECT_EQ(size(tensor(onnx::TensorProto::FLOAT16, {}, "xx")), 2u);
  EXPECT_EQ(size(tensor(onnx::TensorProto::FLOAT, {0, 3}, "")), 0u);
  for (const size_t bytes : {0, 23, 25}) {
    EXPECT_THAT(input_error(size(tensor(onnx::TensorProto::FLOAT, {2, 3}, std::string(bytes, 'x')))),
                HasSubstr("has " + std::to_string(bytes) + " bytes; its dimensions and type ask for 24"));
  }
}

TEST_F(TensorBytesTest, PackedTypesRoundUp) {
  EXPECT_EQ(size(tensor(onnx::TensorProto::INT4, {3}, "xx")), 2u);
  EXPECT_EQ(size(tensor(onnx::TensorProto::UINT2, {5}, "xx")), 2u);
  EXPECT_EQ(size(tensor(onnx::TensorProto::FLOAT6E2M3, {11}, std::string(9, 'x'))), 9u);
}

TEST_F(TensorBytesTest, TypedFieldsGiveNoBytes) {
  onnx::TensorProto proto = tensor(onnx::TensorProto::FLOAT, {2}, "");
  proto.add_float_data(1);
  proto.add_float_data(2);
  EXPECT_EQ(size(proto), 0u);
  onnx::TensorProto words = tensor(onnx::TensorProto::STRING, {1}, "");
  EXPECT_THAT(input_error(size(words)), HasSubstr("has no values"));
  words.add_string_data("word");
  EXPECT_EQ(size(words), 0u);
}

TEST_F(TensorBytesTest, ImpossibleDimsAreErrors) {
  const int64_t huge = int64_t{1} << 40;
  EXPECT_NE(input_error(size(tensor(onnx::TensorProto::FLOAT, {-1}, "xxxx"))), "no error");
  EXPECT_NE(input_error(size(tensor(onnx::TensorProto::FLOAT, {huge, huge}, "xxxx"))), "no error");
  EXPECT_NE(input_error(size(tensor(onnx::TensorProto::FLOAT, {huge, huge, huge, huge}, "xxxx"))), "no error");
  EXPECT_EQ(size(tensor(onnx::TensorProto::FLOAT, {huge, huge, 0}, "")), 0u);
  EXPECT_NE(input_error(size(tensor(12345, {1}, "xxxx"))), "no error");
}

TEST_F(TensorBytesTest, ExternalTensorNeedsItsOwnStore) {
  onnx::TensorProto proto = tensor(onnx::TensorProto::FLOAT, {1}, "");
  proto.set_data_location(onnx::TensorProto::EXTERNAL);
  auto* entry = proto.add_external_data();
  entry->set_key("location");
  entry->set_value("#0");
  EXPECT_NE(input_error(size(proto)), "no error");
  const auto model = load_text(add_model("float[2] w = {1, 2}"));
  ASSERT_TRUE(model);
  EXPECT_NE(input_error(model->tensors->bytes(proto)), "no error");
}

}  // namespace
}  // namespace attn_opt
