#include "src/trial/test_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/defs/parser.h>

#include <fstream>

namespace attn_opt {
namespace {

using ::testing::ElementsAre;

class TestData : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "attn-opt-trial-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    ASSERT_TRUE(
        onnx::OnnxParser::Parse(graph_, "g (float[2] a, float[2] w = {1, 2}, float[2] b) => (float[2] y) { y = Add(a, b) }")
            .IsOK());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& file, const std::vector<float>& values, const std::string& name = {}) {
    const auto path = folder_ / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary)
        << to_proto(Tensor::of<float>({static_cast<int64_t>(values.size())}, values), name).SerializeAsString();
  }

  std::filesystem::path folder_;
  onnx::GraphProto graph_;
};

TEST_F(TestData, InputsWithoutNamesAreThoseThatMustBeFed) {
  write("input_0.pb", {1, 2});
  write("input_1.pb", {3, 4});
  write("output_0.pb", {4, 6});
  const auto sets = read_test_data(folder_, graph_);
  ASSERT_TRUE(sets.has_value()) << sets.error().message();
  ASSERT_EQ(sets->size(), 1u);
  EXPECT_THAT(sets->front().inputs.at("a").data<float>(), ElementsAre(1, 2));
  EXPECT_THAT(sets->front().inputs.at("b").data<float>(), ElementsAre(3, 4));
  EXPECT_THAT(sets->front().outputs.at(0).data<float>(), ElementsAre(4, 6));
}

TEST_F(TestData, NamesGoBeforeNumbers) {
  write("input_0.pb", {1, 2}, "b");
  write("input_1.pb", {3, 4}, "a");
  write("input_2.pb", {5, 6}, "w");
  const auto sets = read_test_data(folder_, graph_);
  ASSERT_TRUE(sets.has_value()) << sets.error().message();
  EXPECT_THAT(sets->front().inputs.at("a").data<float>(), ElementsAre(3, 4));
  EXPECT_THAT(sets->front().inputs.at("w").data<float>(), ElementsAre(5, 6));
}

TEST_F(TestData, SetsAreInOrder) {
  for (const std::string number : {"1", "0", "2"}) write("test_data_set_" + number + "/input_0.pb", {1, 2});
  write("elsewhere/input_0.pb", {1, 2});
  const auto sets = read_test_data(folder_, graph_);
  ASSERT_TRUE(sets.has_value()) << sets.error().message();
  ASSERT_EQ(sets->size(), 3u);
  EXPECT_EQ((*sets)[0].folder.filename(), "test_data_set_0");
  EXPECT_EQ((*sets)[2].folder.filename(), "test_data_set_2");
}

TEST_F(TestData, WhatIsNoTensorIsAnError) {
  std::ofstream(folder_ / "input_0.pb") << "garbage";
  const auto sets = read_test_data(folder_, graph_);
  ASSERT_FALSE(sets.has_value());
  EXPECT_EQ(sets.error().code, ErrorCode::kInvalidInput);
}

TEST_F(TestData, OtherFilesAreIgnored) {
  write("input_0.pb", {1, 2});
  std::ofstream(folder_ / "input_x.pb") << "garbage";
  std::ofstream(folder_ / "notes.txt") << "garbage";
  EXPECT_TRUE(read_test_data(folder_, graph_).has_value());
}

}  // namespace
}  // namespace attn_opt
