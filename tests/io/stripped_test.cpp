#include <cstring>
#include <random>
#include <set>

#include "attn_opt/internal/model_walk.h"
#include "tests/io/stripped_case.h"

namespace attn_opt {
namespace {

using testing::HasSubstr;

TEST_F(StrippedTest, TensorsOfEveryPlaceAreStripped) {
  const auto model = load_stripped(bytes_of(tensors_everywhere()));
  ASSERT_TRUE(model) << model.error().message();
  // All but the indices of the two sparse tensors, which ONNX's checker reads.
  size_t tensors = 0;
  for_each_tensor(model->proto, [&tensors](const onnx::TensorProto&) { ++tensors; });
  EXPECT_EQ(tensors, 13u);
  EXPECT_EQ(count_stored(*model), 11u);
  EXPECT_LT(model->proto.ByteSizeLong(), tensors_everywhere().ByteSizeLong());
  const auto valid = check_model(*model);
  EXPECT_TRUE(valid) << valid.error().message();
}

TEST_F(StrippedTest, BytesComeFromTheModelsFile) {
  const onnx::ModelProto whole = tensors_everywhere();
  std::set<std::string> expected, found;
  for_each_tensor(whole, [&](const onnx::TensorProto& tensor) { expected.insert(tensor.raw_data()); });
  const auto model = load_stripped(bytes_of(whole));
  ASSERT_TRUE(model);
  for_each_tensor(model->proto, [&](const onnx::TensorProto& tensor) {
    const auto bytes = model->tensors->bytes(tensor);
    ASSERT_TRUE(bytes) << bytes.error().message();
    found.emplace(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  });
  EXPECT_EQ(found, expected);
}

TEST_F(StrippedTest, WhatIsSmallStaysInTheProto) {
  const std::string bytes = bytes_of(tensors_everywhere());
  EXPECT_EQ(count_stored(*load_stripped(bytes, 12)), 11u);
  EXPECT_EQ(count_stored(*load_stripped(bytes, 13)), 10u);
  EXPECT_EQ(count_stored(*load_stripped(bytes, 4096)), 0u);
}

TEST_F(StrippedTest, SavedItIsTheModelToTheByte) {
  const std::string bytes = bytes_of(tensors_everywhere());
  for (const uint64_t min_bytes : {0, 1, 12, 24, 40, 4096}) {
    const auto model = load_stripped(bytes, min_bytes);
    ASSERT_TRUE(model) << model.error().message();
    ASSERT_TRUE(save_model(*model, folder_ / "o.onnx"));
    EXPECT_TRUE(read_file(folder_ / "o.onnx") == bytes) << min_bytes;
    ASSERT_TRUE(copy_model(*model, folder_ / "c.onnx"));
    EXPECT_TRUE(read_file(folder_ / "c.onnx") == bytes) << min_bytes;
  }
}

TEST_F(StrippedTest, ChangesOfTheModelMakeTheirWayAroundTheWeights) {
  onnx::ModelProto whole = tensors_everywhere();
  auto model = load_stripped(bytes_of(whole));
  ASSERT_TRUE(model);
  for (auto* proto : {&whole, &model->proto}) {
    proto->set_producer_name(std::string(300, 'p'));  // lengths in front take more bytes than before
    proto->mutable_graph()->mutable_initializer()->SwapElements(0, 1);
    proto->mutable_graph()->mutable_node(0)->mutable_attribute(0)->mutable_t()->set_name(std::string(200, 'n'));
    proto->mutable_functions()->Clear();
  }
  ASSERT_TRUE(save_model(*model, folder_ / "o.onnx"));
  EXPECT_TRUE(read_file(folder_ / "o.onnx") == bytes_of(whole));
}

class StrippedModelsTest : public StrippedTest, public testing::WithParamInterface<std::string> {};

TEST_P(StrippedModelsTest, SavedIsWhatProtobufWrites) {
  const std::string bytes = read_file(kModels / GetParam());
  const auto whole = parse_whole(bytes);
  ASSERT_TRUE(whole);
  for (const uint64_t min_bytes : {1, 100, 5000}) {
    const auto model = load_model(kModels / GetParam(), {.allowed_data_dirs = {}, .min_stripped_bytes = min_bytes});
    ASSERT_TRUE(model) << model.error().message();
    EXPECT_TRUE(min_bytes > 1 || count_stored(*model) > 5);
    ASSERT_TRUE(save_model(*model, folder_ / "o.onnx"));
    EXPECT_TRUE(read_file(folder_ / "o.onnx") == bytes_of(*whole)) << min_bytes;
    EXPECT_TRUE(check_model(*model));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, StrippedModelsTest,
                         testing::Values("bert-ts14s.onnx", "gpt2-past-ts17s.onnx", "llama-past-ts17s.onnx",
                                         "opt-t5-decoder_model_merged.onnx", "sdpa-boolmask-ts14s-f16.onnx",
                                         "sdpa-gqa-dy23s.onnx", "timm-swin-ts17e.onnx", "llama-past-dy18s-extdata/model.onnx"));

TEST_F(StrippedTest, TextHoldsTheWeights) {
  onnx::ModelProto whole = tensors_everywhere();
  whole.mutable_graph()->clear_sparse_initializer();
  whole.mutable_graph()->mutable_node()->DeleteSubrange(1, 1);
  whole.clear_training_info();
  ASSERT_TRUE(save_model(*load_stripped(bytes_of(whole), 1), folder_ / "stripped.onnxtxt"));
  ASSERT_TRUE(save_model(*load_stripped(bytes_of(whole), 4096), folder_ / "whole.onnxtxt"));
  EXPECT_EQ(read_file(folder_ / "stripped.onnxtxt"), read_file(folder_ / "whole.onnxtxt"));
}

TEST_F(StrippedTest, LargeTensorsArriveWholeWhereverTheyGo) {
  onnx::ModelProto whole = tensors_everywhere();
  std::mt19937_64 random(1);
  for (const int elements : {10'000'000, 131072 / 4, 1'000'001}) {
    std::string raw_data(static_cast<size_t>(elements) * 4, '\0');
    for (size_t i = 0; i + 8 <= raw_data.size(); i += 8) {
      const uint64_t bits = random();
      std::memcpy(raw_data.data() + i, &bits, 8);
    }
    auto* tensor = whole.mutable_graph()->add_initializer();
    tensor->set_name("large" + std::to_string(elements));
    tensor->set_data_type(onnx::TensorProto::FLOAT);
    tensor->add_dims(elements);
    tensor->set_raw_data(raw_data);
  }
  auto model = load_stripped(bytes_of(whole), 4096);
  ASSERT_TRUE(model);
  EXPECT_EQ(count_stored(*model), 3u);
  std::vector<fs::path> outputs = {folder_ / "o.onnx"};
  if (fs::is_directory("/dev/shm")) outputs.push_back("/dev/shm" / folder_.filename());  // another file system
  for (const fs::path& output : outputs) {
    for (const char* producer : {"a name that moves the weights", "test"}) {
      whole.set_producer_name(producer);
      model->proto.set_producer_name(producer);
      ASSERT_TRUE(save_model(*model, output));
      EXPECT_TRUE(read_file(output) == bytes_of(whole)) << output << ' ' << producer;
    }
    ASSERT_TRUE(copy_model(*model, output));
    EXPECT_TRUE(read_file(output) == read_file(folder_ / "m.onnx")) << output;
    fs::remove(output);
  }
}

TEST_F(StrippedTest, InputMayBeReplacedByTheOutput) {
  auto model = load_stripped(bytes_of(tensors_everywhere()));
  ASSERT_TRUE(model);
  ASSERT_TRUE(save_model(*model, folder_ / "m.onnx"));
  EXPECT_TRUE(read_file(folder_ / "m.onnx") == bytes_of(tensors_everywhere()));
}

TEST_F(StrippedTest, InputThatChangesMeanwhileIsAnError) {
  const auto model = load_stripped(bytes_of(tensors_everywhere()));
  ASSERT_TRUE(model);
  write_file(folder_ / "m.onnx", bytes_of(tensors_everywhere()) + "more");
  for (const auto write : {save_model, copy_model}) {
    EXPECT_THAT(input_error(write(*model, folder_ / "o.onnx", {})), HasSubstr("was changed meanwhile"));
  }
  EXPECT_THAT(files_in(folder_), testing::ElementsAre("m.onnx"));
}

TEST_F(StrippedTest, CheckerAsksOfStrippedTensorsWhatItAsksOfOthers) {
  const auto with_first = [](const std::function<void(onnx::TensorProto&)>& change) {
    onnx::ModelProto model = tensors_everywhere();
    change(*model.mutable_graph()->mutable_initializer(0));
    return bytes_of(model);
  };
  const std::vector<std::string> bad = {
      with_first([](auto& tensor) { tensor.set_raw_data("short"); }),
      with_first([](auto& tensor) { tensor.add_float_data(1); }),
      with_first([](auto& tensor) { tensor.set_data_type(onnx::TensorProto::STRING); }),
      with_first([](auto& tensor) { tensor.clear_data_type(); }),
      with_first([](auto& tensor) { tensor.set_dims(0, 0); }),
      with_first([](auto& tensor) { tensor.set_dims(0, -1); }),
  };
  for (const std::string& bytes : bad) {
    for (const uint64_t min_bytes : {1, 4096}) {
      const auto model = load_stripped(bytes, min_bytes);
      ASSERT_TRUE(model);
      EXPECT_THAT(input_error(check_model(*model)), HasSubstr("is not valid ONNX")) << min_bytes;
    }
  }
  EXPECT_THAT(input_error(check_model(*load_stripped(bad[0]))),
              HasSubstr("tensor 't1': has 5 bytes; its dimensions and type ask for 12"));
}

TEST_F(StrippedTest, ExternalTensorWithBytesIsRefused) {
  onnx::ModelProto model = tensors_everywhere();
  model.mutable_graph()->mutable_initializer(0)->set_data_location(onnx::TensorProto::EXTERNAL);
  EXPECT_THAT(input_error(load_stripped(bytes_of(model))), HasSubstr("tensor 't1': is said to be external and has raw_data"));
}

}  // namespace
}  // namespace attn_opt
