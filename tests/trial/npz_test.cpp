#include "src/trial/npz.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "src/trial/npy.h"

namespace attn_opt {
namespace {

using P = onnx::TensorProto;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr size_t kAnySize = size_t{1} << 30;

/// Reads BYTES as a .npy file.
Expected<Tensor> parsed(std::string bytes, DataType declared = P::UNDEFINED, size_t memory_limit = kAnySize) {
  size_t at = 0;
  const auto read = [&](std::span<std::byte> to) {
    if (bytes.size() - at < to.size()) return false;
    std::memcpy(to.data(), bytes.data() + at, to.size());
    at += to.size();
    return true;
  };
  return read_npy("x", read, declared, memory_limit);
}

/// What numpy.save writes for an array with this header and DATA.
std::string npy(const std::string& descr, const std::string& order, const std::string& shape, const std::string& data) {
  std::string header = "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size());
  bytes += '\0';
  return bytes + header + data;
}

std::string bytes_of(const std::vector<int16_t>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int16_t)};
}

template <class T>
std::vector<T> values(const Tensor& tensor) {
  return {tensor.data<T>().begin(), tensor.data<T>().end()};
}

TEST(Npy, ReadsBothOrders) {
  const auto rows = parsed(npy("<i2", "False", "(2, 3)", bytes_of({1, 2, 3, 4, 5, 6})));
  ASSERT_TRUE(rows) << rows.error().message();
  EXPECT_THAT(rows->dims(), ElementsAre(2, 3));
  EXPECT_THAT(values<int16_t>(*rows), ElementsAre(1, 2, 3, 4, 5, 6));
  const auto columns = parsed(npy("<i2", "True", "(2, 3)", bytes_of({1, 4, 2, 5, 3, 6})));
  EXPECT_THAT(values<int16_t>(*columns), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(parsed(npy("<i2", "False", "(1,)", bytes_of({7})))->dims(), ElementsAre(1));
  EXPECT_THAT(parsed(npy("<i2", "False", "()", bytes_of({7})))->dims(), ElementsAre());
}

TEST(Npy, ReadsStrings) {
  const auto wide = parsed(npy("<U2", "False", "(2,)", std::string("a\0\0\0b\0\0\0\xac\x20\0\0\0\0\0\0", 16)));
  ASSERT_TRUE(wide) << wide.error().message();
  EXPECT_THAT(values<std::string>(*wide), ElementsAre("ab", "\xe2\x82\xac"));
  EXPECT_THAT(values<std::string>(*parsed(npy("|S3", "False", "(2,)", std::string("abcd\0\0", 6)))), ElementsAre("abc", "d"));
}

TEST(Npy, VoidIsWhatTheModelDeclares) {
  const std::string bytes = npy("|V2", "False", "(2,)", bytes_of({0x3f80, 0x4000}));
  const auto halves = parsed(bytes, P::BFLOAT16);
  ASSERT_TRUE(halves) << halves.error().message();
  EXPECT_EQ(static_cast<float>(halves->data<BFloat16>()[1]), 2);
  EXPECT_EQ(parsed(bytes).error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(parsed(bytes, P::FLOAT).error().code, ErrorCode::kUnsupported);
}

TEST(Npy, WhatIsNoneIsRefused) {
  for (const std::string& bytes :
       {std::string(), std::string("\x93NUMPY"), std::string("PK\x03\x04 something else"),
        npy("<i2", "False", "(2, 3)", bytes_of({1, 2})), npy("<i2", "False", "(2, -3)", ""), npy("<i2", "False", "2", "")}) {
    EXPECT_EQ(parsed(bytes).error().code, ErrorCode::kInvalidInput) << bytes;
  }
  for (const std::string descr : {"|O", "<c8", ">f4", "<M8[s]", "<U99999999999999999999"}) {
    EXPECT_EQ(parsed(npy(descr, "False", "(1,)", "        ")).error().code, ErrorCode::kUnsupported) << descr;
  }
  EXPECT_EQ(parsed(npy("<i2", "False", "(4611686018427387904, 4)", "")).error().code, ErrorCode::kLimit);
  EXPECT_EQ(parsed(npy("<i2", "False", "(1000,)", ""), P::UNDEFINED, 100).error().code, ErrorCode::kLimit);
  EXPECT_EQ(parsed(npy("<U700000000", "False", "(0,)", ""), P::UNDEFINED, 100).error().code, ErrorCode::kLimit);
  EXPECT_THAT(parsed(npy("<U5", "False", "(0,)", ""))->dims(), ElementsAre(0));
}

class Npz : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = ::testing::TempDir() + "npzXXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

TEST_F(Npz, HoldsWhatWasWritten) {
  const auto path = folder_ / "values.npz";
  const Tensor small = *Tensor::of<float>({3}, {-8, 7, 0}).cast(P::INT4);
  ASSERT_TRUE(write_npz(path, {{"f", Tensor::of<float>({2, 1}, {1.5f, -2})},
                               {"text/with.dots", Tensor::of<std::string>({2}, {"", "\xc3\xa9t\xc3\xa9"})},
                               {"small", small},
                               {"empty", Tensor(P::INT64, {0, 4})}}));
  const auto arrays = read_npz(path, {{"small", P::INT4}}, kAnySize);
  ASSERT_TRUE(arrays) << arrays.error().message();
  ASSERT_EQ(arrays->size(), 4u);
  EXPECT_THAT(values<float>(arrays->at("f")), ElementsAre(1.5f, -2));
  EXPECT_THAT(arrays->at("f").dims(), ElementsAre(2, 1));
  EXPECT_THAT(values<std::string>(arrays->at("text/with.dots")), ElementsAre("", "\xc3\xa9t\xc3\xa9"));
  EXPECT_EQ(arrays->at("small").type(), P::INT4);
  EXPECT_THAT(values<float>(*arrays->at("small").cast(P::FLOAT)), ElementsAre(-8, 7, 0));
  EXPECT_THAT(arrays->at("empty").dims(), ElementsAre(0, 4));
}

TEST_F(Npz, ASequenceIsRefusedAndNothingIsWritten) {
  const auto status = write_npz(folder_ / "values.npz", {{"s", Tensor::sequence({})}});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kOutput);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "values.npz"));
}

TEST_F(Npz, WhatIsNoArchiveIsRefused) {
  std::ofstream(folder_ / "text.npz") << "no archive";
  for (const std::string name : {"text.npz", "missing.npz"}) {
    EXPECT_EQ(read_npz(folder_ / name, {}, kAnySize).error().code, ErrorCode::kInvalidInput) << name;
  }
}

// testdata/trial/savez.npz: numpy.savez_compressed(a=arange(6, dtype=float32).reshape(2, 3), b=asfortranarray of the same in
// float16, c=array(["x", "yz"]), d=array(True))
TEST_F(Npz, ReadsWhatNumpyWrote) {
  const auto arrays = read_npz(ATTN_OPT_TESTDATA "/trial/savez.npz", {}, kAnySize);
  ASSERT_TRUE(arrays) << arrays.error().message();
  EXPECT_THAT(values<float>(arrays->at("a")), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(values<float>(*arrays->at("b").cast(P::FLOAT)), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(values<std::string>(arrays->at("c")), ElementsAre("x", "yz"));
  EXPECT_TRUE(arrays->at("d").data<bool>()[0]);
}

}  // namespace
}  // namespace attn_opt
