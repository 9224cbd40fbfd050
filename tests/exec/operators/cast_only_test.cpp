// Float types of 8, 6 and 4 bits against the values that Python's ml_dtypes, which ONNX's reference uses, gives.
#include "src/exec/elementwise/cast_only.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace attn_opt {
namespace {

using P = onnx::TensorProto;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Decoding {
  DataType type;
  std::vector<std::pair<int, double>> values;
};

std::vector<Decoding> decodings() {
  return {
      {P::FLOAT8E4M3FN,
       {{0, 0},
        {1, 0x1p-9},
        {7, 0x1.cp-7},
        {8, 0x1p-6},
        {19, 0x1.6p-5},
        {63, 0x1.ep+0},
        {64, 2},
        {126, 448},
        {127, kNan},
        {128, -0.0},
        {197, -0x1.ap+1},
        {254, -448},
        {255, kNan}}},
      {P::FLOAT8E4M3FNUZ,
       {{0, 0},
        {1, 0x1p-10},
        {7, 0x1.cp-8},
        {8, 0x1p-7},
        {19, 0x1.6p-6},
        {63, 0x1.ep-1},
        {64, 1},
        {126, 224},
        {127, 240},
        {128, kNan},
        {129, -0x1p-10},
        {197, -0x1.ap+0},
        {255, -240}}},
      {P::FLOAT8E5M2,
       {{0, 0},
        {1, 0x1p-16},
        {3, 0x1.8p-15},
        {8, 0x1p-13},
        {19, 0x1.cp-11},
        {63, 0x1.cp+0},
        {123, 57344},
        {124, kInfinity},
        {125, kNan},
        {128, -0.0},
        {197, -5},
        {252, -kInfinity},
        {255, kNan}}},
      {P::FLOAT8E5M2FNUZ,
       {{0, 0},
        {1, 0x1p-17},
        {3, 0x1.8p-16},
        {8, 0x1p-14},
        {19, 0x1.cp-12},
        {63, 0x1.cp-1},
        {124, 32768},
        {127, 57344},
        {128, kNan},
        {197, -0x1.4p+1},
        {255, -57344}}},
      {P::FLOAT6E2M3,
       {{0, 0},
        {1, 0x1p-3},
        {7, 0x1.cp-1},
        {8, 1},
        {19, 0x1.6p+1},
        {31, 0x1.ep+2},
        {32, -0.0},
        {46, -0x1.cp+0},
        {63, -0x1.ep+2}}},
      {P::FLOAT6E3M2, {{0, 0}, {1, 0x1p-4}, {7, 0x1.cp-2}, {8, 0x1p-1}, {19, 0x1.cp+1}, {31, 28}, {32, -0.0}, {63, -28}}},
      {P::FLOAT4E2M1, {{0, 0}, {1, 0x1p-1}, {3, 0x1.8p+0}, {7, 6}, {8, -0.0}, {15, -6}}},
      {P::FLOAT8E8M0, {{0, 0x1p-127}, {8, 0x1p-119}, {127, 1}, {128, 2}, {254, 0x1p127}, {255, kNan}}},
  };
}

TEST(CastOnly, CodesHaveTheirValues) {
  for (const auto& [type, values] : decodings()) {
    for (const auto& [code, expected] : values) {
      const double value = float_value(static_cast<uint8_t>(code), type);
      const std::string where = type_name(type) + " " + std::to_string(code);
      EXPECT_EQ(std::isnan(value), std::isnan(expected)) << where;
      EXPECT_TRUE(value == expected || std::isnan(expected)) << where;
      EXPECT_EQ(std::signbit(value) && !std::isnan(value), std::signbit(expected) && !std::isnan(expected)) << where;
    }
  }
}

constexpr double kValues[] = {0.,   -0.,   1e-9, -1e-9, 0.0019, 0.01,  -0.07, 0.25,       0.75,      1.1,
                              1.25, -1.75, 2.5,  3.5,   5,      7,     7.6,   -29,        31,        240,
                              248,  449,   -465, 57000, 58000,  62000, 1e9,   -kInfinity, kInfinity, kNan};

TEST(CastOnly, ValuesGetTheirCodes) {
  const std::vector<std::pair<DataType, std::vector<int>>> expected = {
      {P::FLOAT8E4M3FN, {0,  128, 0,   128, 1,   5,   153, 40,  52,  57,  58,  190, 66,  70,  74,
                         78, 79,  222, 96,  119, 120, 126, 255, 127, 127, 127, 127, 255, 127, 127}},
      {P::FLOAT8E4M3FNUZ, {0,  0,  0,   0,   2,   10,  161, 48,  60,  65,  66,  198, 74,  78,  82,
                           86, 87, 230, 104, 127, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128}},
      {P::FLOAT8E5M2, {0,  128, 0,   128, 24, 33, 172, 52,  58,  60,  61,  191, 65,  67,  69,
                       71, 72,  207, 80,  92, 92, 95,  223, 123, 123, 124, 124, 252, 124, 126}},
      {P::FLOAT8E5M2FNUZ, {0,  0,  0,   0,  28, 37, 176, 56,  62,  64,  65,  195, 69,  71,  73,
                           75, 76, 211, 84, 96, 96, 99,  227, 127, 127, 128, 128, 128, 128, 128}},
      {P::FLOAT6E2M3,
       {0, 32, 0, 32, 0, 0, 33, 2, 6, 9, 10, 46, 18, 22, 26, 30, 31, 63, 31, 31, 31, 31, 63, 31, 31, 31, 31, 63, 31, 32}},
      {P::FLOAT6E3M2,
       {0, 32, 0, 32, 0, 0, 33, 4, 10, 12, 13, 47, 17, 19, 21, 23, 24, 63, 31, 31, 31, 31, 63, 31, 31, 31, 31, 63, 31, 32}},
      {P::FLOAT4E2M1, {0, 8, 0, 8, 0, 0, 8, 0, 2, 2, 2, 12, 4, 6, 6, 7, 7, 15, 7, 7, 7, 7, 15, 7, 7, 7, 7, 15, 7, 8}},
  };
  CastRules rules;
  rules.saturate = false;
  for (const auto& [type, codes] : expected) {
    for (size_t i = 0; i < codes.size(); ++i) {
      EXPECT_EQ(float_code(kValues[i], type, rules), codes[i]) << type_name(type) << " " << kValues[i];
    }
  }
}

TEST(CastOnly, BeyondTheRangeSaturates) {
  for (const DataType type : {P::FLOAT8E4M3FN, P::FLOAT8E4M3FNUZ, P::FLOAT8E5M2, P::FLOAT8E5M2FNUZ}) {
    const double largest = type == P::FLOAT8E4M3FN ? 448 : type == P::FLOAT8E4M3FNUZ ? 240 : 57344;
    EXPECT_EQ(float_value(float_code(1e9, type, {}), type), largest);
    EXPECT_EQ(float_value(float_code(-kInfinity, type, {}), type), -largest);
  }
}

TEST(CastOnly, EachFiniteCodeIsThatOfItsValue) {
  for (const auto& [type, values] : decodings()) {
    const int codes = 1 << (type == P::FLOAT4E2M1 ? 4 : type == P::FLOAT6E2M3 || type == P::FLOAT6E3M2 ? 6 : 8);
    for (int code = 0; code < codes; ++code) {
      const float value = float_value(static_cast<uint8_t>(code), type);
      if (std::isfinite(value) && !(type == P::FLOAT8E8M0 && code == 0)) {  // 2^-127 is a subnormal float
        EXPECT_EQ(float_code(value, type, {}), code) << type_name(type);
      }
    }
  }
}

TEST(CastOnly, TensorsArePackedInTheirProto) {
  for (const auto& [type, values] : std::vector<std::pair<DataType, std::vector<float>>>{
           {P::INT4, {-8, 7, -1}}, {P::UINT2, {3, 0, 1, 2, 3}}, {P::FLOAT6E2M3, {0.125, -7.5, 1, 2, 0.25}}}) {
    const Tensor wide = Tensor::of<float>({static_cast<int64_t>(values.size())}, values);
    const auto proto = to_proto(*wide.cast(type));
    const auto back = to_tensor(proto, inline_tensors());
    ASSERT_TRUE(back) << back.error().message();
    EXPECT_EQ(back->type(), type);
    const auto restored = *back->cast(P::FLOAT);
    EXPECT_TRUE(std::ranges::equal(restored.data<float>(), values)) << type_name(type);
  }
  const auto packed = to_proto(*Tensor::of<float>({3}, {-8, 7, -1}).cast(P::INT4));
  EXPECT_EQ(packed.raw_data(), std::string("\x78\x0f"));
}

TEST(CastOnly, Int32DataHoldsAsManyElementsAnEntryAsFitAByte) {
  onnx::TensorProto proto;
  proto.set_data_type(P::INT4);
  proto.add_dims(3);
  proto.add_int32_data(0x78);
  proto.add_int32_data(0x0f);
  const auto tensor = to_tensor(proto, inline_tensors());
  ASSERT_TRUE(tensor) << tensor.error().message();
  EXPECT_TRUE(std::ranges::equal(tensor->cast(P::INT32)->data<int32_t>(), std::vector<int32_t>{-8, 7, -1}));
  proto.add_int32_data(0);
  EXPECT_FALSE(to_tensor(proto, inline_tensors()));
}

}  // namespace
}  // namespace attn_opt
