#include "attn_opt/tensor.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "tests/exec/models.h"

namespace attn_opt::testing {
namespace {

using ::testing::ElementsAre;
using P = onnx::TensorProto;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Half, RoundsToNearestEven) {
  EXPECT_EQ(Half(1.0f).bits, 0x3c00);
  EXPECT_EQ(Half(1.0f + 0x1p-11f).bits, 0x3c00);             // a tie goes to the even neighbour below
  EXPECT_EQ(Half(1.0f + 3 * 0x1p-11f).bits, 0x3c02);         // and above
  EXPECT_EQ(Half(1.0f + 0x1p-11f + 0x1p-20f).bits, 0x3c01);  // beyond the tie
  EXPECT_EQ(Half(65504.0f).bits, 0x7bff);
  EXPECT_EQ(Half(65519.9f).bits, 0x7bff);
  EXPECT_EQ(Half(65520.0f).bits, 0x7c00);
  EXPECT_EQ(Half(-0x1p-24f).bits, 0x8001);  // the smallest subnormal
  EXPECT_EQ(Half(0x1p-25f).bits, 0x0000);
  EXPECT_EQ(Half(0x1.8p-25f).bits, 0x0001);
  EXPECT_EQ(Half(-0.0f).bits, 0x8000);
  EXPECT_TRUE(std::isnan(static_cast<float>(Half(std::nanf("")))));
}

TEST(Half, EveryValueSurvivesTheWayThroughFloat) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    Half half;
    half.bits = static_cast<uint16_t>(bits);
    const float value = half;
    if (std::isnan(value)) continue;
    ASSERT_EQ(Half(value).bits, bits);
  }
}

TEST(BFloat16, RoundsToNearestEven) {
  EXPECT_EQ(BFloat16(1.0f).bits, 0x3f80);
  EXPECT_EQ(BFloat16(1.0f + 0x1p-8f).bits, 0x3f80);
  EXPECT_EQ(BFloat16(1.0f + 3 * 0x1p-8f).bits, 0x3f82);
  EXPECT_EQ(BFloat16(-kInfinity).bits, 0xff80);
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(std::nanf("")))));
}

TEST(ElementCount, RefusesNegativeAndHugeDims) {
  EXPECT_EQ(element_count(Dims{}), 1);
  EXPECT_EQ(element_count(Dims{2, 0, 3}), 0);
  EXPECT_EQ(element_count(Dims{2, -1}), -1);
  EXPECT_EQ(element_count(Dims{int64_t{1} << 40, int64_t{1} << 40}), -1);
  EXPECT_EQ(element_count(Dims{0, int64_t{1} << 40, int64_t{1} << 40}), -1);
}

TEST(Cast, ToBoolIsTrueForAllButZero) {
  const Tensor x = Tensor::of<float>({4}, {0.0f, -0.0f, 0.5f, std::nanf("")});
  EXPECT_THAT(values<bool>(*x.cast(P::BOOL)), ElementsAre(false, false, true, true));
}

TEST(Cast, OfFloatsOutOfRangeIsDefined) {
  const Tensor x = Tensor::of<float>({4}, {1e30f, -1e30f, std::nanf(""), -1.9f});
  constexpr int32_t kLowest = std::numeric_limits<int32_t>::min();
  EXPECT_THAT(values<int32_t>(*x.cast(P::INT32)), ElementsAre(kLowest, kLowest, kLowest, -1));
}

TEST(Cast, ToATypeThatTensorsDoNotHoldIsUnsupported) {
  const auto result = Tensor::scalar<float>(1).cast(P::COMPLEX64);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kUnsupported);
}

TEST(ToTensor, ReadsTypedFields) {
  onnx::TensorProto proto;
  proto.set_data_type(P::FLOAT16);
  proto.add_dims(2);
  proto.add_int32_data(0x3c00);
  proto.add_int32_data(0xc000);
  const auto tensor = to_tensor(proto, inline_tensors());
  ASSERT_TRUE(tensor);
  EXPECT_EQ(static_cast<float>(tensor->data<Half>()[0]), 1.0f);
  EXPECT_EQ(static_cast<float>(tensor->data<Half>()[1]), -2.0f);
}

TEST(ToTensor, RefusesFieldsOfAnotherSize) {
  onnx::TensorProto proto;
  proto.set_data_type(P::INT64);
  proto.add_dims(3);
  proto.add_int64_data(1);
  const auto tensor = to_tensor(proto, inline_tensors());
  ASSERT_FALSE(tensor);
  EXPECT_EQ(tensor.error().code, ErrorCode::kInvalidInput);
}

TEST(ToTensor, RawBytesThatAreNoBoolsBecomeBools) {
  onnx::TensorProto proto;
  proto.set_data_type(P::BOOL);
  proto.add_dims(3);
  proto.set_raw_data(std::string("\x00\x02\x01", 3));
  EXPECT_THAT(values<bool>(*to_tensor(proto, inline_tensors())), ElementsAre(false, true, true));
}

TEST(ToTensor, ViewsAlignedBytesWithoutCopying) {
  const onnx::TensorProto proto = to_proto(Tensor::of<float>({3}, {1, 2, 3}), "w");
  const auto tensor = to_tensor(proto, inline_tensors());
  ASSERT_TRUE(tensor);
  EXPECT_EQ(static_cast<const void*>(tensor->bytes().data()), proto.raw_data().data());
  EXPECT_EQ(tensor->exclusive_bytes(), 0u);
}

TEST(View, CopiesBytesThatAreNotAligned) {
  alignas(8) std::byte storage[12] = {};
  const float value = 2.5f;
  std::copy_n(reinterpret_cast<const std::byte*>(&value), 4, storage + 1);
  const Tensor tensor = Tensor::view(P::FLOAT, {1}, std::span(storage).subspan(1, 4));
  EXPECT_NE(tensor.bytes().data(), storage + 1);
  EXPECT_EQ(tensor.data<float>()[0], 2.5f);
}

TEST(Tensor, WhatIsWrittenIntoAViewLeavesTheViewedAlone) {
  const std::vector<float> weights = {1, 2};
  Tensor tensor = Tensor::view(P::FLOAT, {2}, std::as_bytes(std::span(weights)));
  EXPECT_EQ(static_cast<const void*>(tensor.data<float>().data()), static_cast<const void*>(weights.data()));
  tensor.mutable_data<float>()[0] = 7;
  EXPECT_EQ(weights[0], 1);
  EXPECT_EQ(tensor.data<float>()[0], 7);
  EXPECT_EQ(tensor.data<float>()[1], 2);
}

TEST(ToProto, RoundTripsStrings) {
  const Tensor text = Tensor::of<std::string>({2}, {"a", "bc"});
  EXPECT_THAT(values<std::string>(*to_tensor(to_proto(text), inline_tensors())), ElementsAre("a", "bc"));
}

}  // namespace
}  // namespace attn_opt::testing
