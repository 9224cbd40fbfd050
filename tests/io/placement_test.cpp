#include <algorithm>
#include <fstream>

#include "attn_opt/internal/model_walk.h"
#include "src/io/wire/wire_rewrite.h"
#include "tests/io/stripped_case.h"

namespace attn_opt {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Gt;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Le;
using testing::Not;

/// Models of stripped tensors, written with and without external data.
class PlacementTest : public StrippedTest {
 protected:
  PlacementTest() { fs::create_directory(out()); }
  fs::path out() const { return folder_ / "out"; }

  Model input() { return load_stripped(bytes_of(tensors_everywhere())).value(); }
  static std::set<std::string> contents(const Model& model) {
    std::set<std::string> found;
    for_each_tensor(model.proto, [&](const onnx::TensorProto& tensor) {
      const auto bytes = model.tensors->bytes(tensor);
      EXPECT_TRUE(bytes) << bytes.error().message();
      if (bytes) found.emplace(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    });
    return found;
  }
  static uint64_t number(const onnx::TensorProto& tensor, const std::string& key) {
    for (const auto& entry : tensor.external_data()) {
      if (entry.key() == key) return std::stoull(entry.value());
    }
    return UINT64_MAX;
  }
  /// The size of the model's file with all its tensors, less one.
  SaveOptions too_small(ExternalData external_data) {
    return {.max_file_bytes = bytes_of(tensors_everywhere()).size() - 1, .external_data = external_data};
  }
};

TEST_F(PlacementTest, ExternalMovesTensorsToAFileBesideTheModel) {
  const Model model = input();
  for (const auto write : {save_model, copy_model}) {
    ASSERT_TRUE(write(model, out() / "o.onnx", {.external_data = ExternalData::kExternal}));
    EXPECT_THAT(files_in(out()), ElementsAre("o.data", "o.onnx"));
    const auto saved = load_model(out() / "o.onnx");
    ASSERT_TRUE(saved) << saved.error().message();
    EXPECT_EQ(contents(*saved), contents(model));
    EXPECT_TRUE(check_model(*saved));
  }
}

TEST_F(PlacementTest, ProgressGrowsToOne) {
  ASSERT_TRUE(save_model(input(), folder_ / "external.onnx", {.external_data = ExternalData::kExternal}));
  for (const auto external_data : {ExternalData::kAuto, ExternalData::kInline, ExternalData::kExternal}) {
    for (const bool is_external : {false, true}) {
      const Model model = is_external ? load_model(folder_ / "external.onnx").value() : input();
      std::vector<double> parts;
      const auto saved = save_model(model, out() / "o.onnx",
                                    {.external_data = external_data, .progress = [&](double part) { parts.push_back(part); }});
      ASSERT_TRUE(saved) << saved.error().message();
      fs::remove_all(out());
      fs::create_directory(out());
      ASSERT_THAT(parts, Not(IsEmpty()));
      EXPECT_TRUE(std::ranges::is_sorted(parts));
      const bool leaves_gaps_out = is_external && external_data == ExternalData::kInline;
      EXPECT_THAT(parts.back(), AllOf(Gt(leaves_gaps_out ? 0 : 0.9), Le(1.0)))
          << is_external << ", external data " << static_cast<int>(external_data);
    }
  }
}

TEST_F(PlacementTest, NothingIsKeptWhenProgressThrows) {
  const SaveOptions stopped{.external_data = ExternalData::kExternal, .progress = [](double) { throw std::exception(); }};
  EXPECT_THROW((void)save_model(input(), out() / "o.onnx", stopped), std::exception);
  EXPECT_THAT(files_in(out()), IsEmpty());
}

TEST_F(PlacementTest, MovedTensorsAreAlignedAndSparseOnesStay) {
  ASSERT_TRUE(save_model(input(), out() / "o.onnx", {.external_data = ExternalData::kExternal}));
  const auto saved = parse_whole(read_file(out() / "o.onnx"));
  ASSERT_TRUE(saved);
  std::set<uint64_t> offsets;
  for_each_tensor(*saved, [&](const onnx::TensorProto& tensor) {
    EXPECT_FALSE(tensor.data_location() == onnx::TensorProto::EXTERNAL && tensor.has_raw_data());
    if (tensor.data_location() != onnx::TensorProto::EXTERNAL) return;
    offsets.insert(number(tensor, "offset"));
    EXPECT_EQ(number(tensor, "offset") % 4096, 0u);
    EXPECT_EQ(number(tensor, "length"), 4 * static_cast<uint64_t>(tensor.dims(0)));
  });
  EXPECT_EQ(offsets.size(), 9u);
  EXPECT_TRUE(saved->graph().sparse_initializer(0).values().has_raw_data());
}

TEST_F(PlacementTest, AutoMovesThemOnlyIfOneFileIsTooSmall) {
  onnx::ModelProto large = tensors_everywhere();
  large.mutable_graph()->mutable_initializer(0)->set_dims(0, 1000);
  large.mutable_graph()->mutable_initializer(0)->set_raw_data(std::string(4000, '.'));
  const std::string bytes = bytes_of(large);
  const auto model = load_stripped(bytes, 1000);
  ASSERT_TRUE(model);
  ASSERT_TRUE(save_model(*model, out() / "o.onnx", {.max_file_bytes = bytes.size()}));
  EXPECT_THAT(files_in(out()), ElementsAre("o.onnx"));
  ASSERT_TRUE(save_model(*model, out() / "o.onnx", {.max_file_bytes = bytes.size() - 1}));
  EXPECT_THAT(files_in(out()), ElementsAre("o.data", "o.onnx"));
  EXPECT_EQ(read_file(out() / "o.data"), std::string(4000, '.'));
  EXPECT_EQ(contents(*load_model(out() / "o.onnx")), contents(*model));
}

TEST_F(PlacementTest, UnchangedModelIsCopiedWhateverItsSize) {
  ASSERT_TRUE(copy_model(input(), out() / "o.onnx", too_small(ExternalData::kAuto)));
  EXPECT_TRUE(read_file(out() / "o.onnx") == bytes_of(tensors_everywhere()));
}

TEST_F(PlacementTest, InlineAboveTheLimitIsAnErrorAndLeavesNothing) {
  EXPECT_THAT(error_of(save_model(input(), out() / "o.onnx", too_small(ExternalData::kInline)), ErrorCode::kOutput),
              HasSubstr("--external-data auto or external"));
  EXPECT_THAT(files_in(out()), testing::IsEmpty());
}

TEST_F(PlacementTest, InlineTakesExternalDataIn) {
  ASSERT_TRUE(save_model(input(), out() / "o.onnx", {.external_data = ExternalData::kExternal}));
  const auto external = load_model(out() / "o.onnx");
  ASSERT_TRUE(external);
  for (const auto write : {save_model, copy_model}) {
    ASSERT_TRUE(write(*external, folder_ / "i.onnx", {.external_data = ExternalData::kInline}));
    onnx::ModelProto expected = tensors_everywhere();
    expected.mutable_graph()->mutable_initializer(1)->clear_data_location();  // which is what DEFAULT means
    EXPECT_TRUE(read_file(folder_ / "i.onnx") == bytes_of(expected));
  }
  EXPECT_THAT(files_in(folder_), ElementsAre("i.onnx", "m.onnx", "out", "out/o.data", "out/o.onnx"));
}

TEST_F(PlacementTest, OtherFileOfThatNameIsKeptAndAnEqualOneUsed) {
  write_file(out() / "o.data", "precious");
  const SaveOptions options{.external_data = ExternalData::kExternal};
  for (int run = 0; run < 2; ++run) {
    ASSERT_TRUE(save_model(input(), out() / "o.onnx", options));
    EXPECT_THAT(files_in(out()), ElementsAre("o.2.data", "o.data", "o.onnx"));
    EXPECT_EQ(contents(*load_model(out() / "o.onnx")), contents(input()));
  }
  EXPECT_EQ(read_file(out() / "o.data"), "precious");
}

TEST_F(PlacementTest, ModelMayBeCalledLikeItsData) {
  ASSERT_TRUE(save_model(input(), out() / "o.data", {.external_data = ExternalData::kExternal}));
  EXPECT_THAT(files_in(out()), ElementsAre("o.2.data", "o.data"));
  EXPECT_EQ(contents(*load_model(out() / "o.data")), contents(input()));
}

TEST_F(PlacementTest, FailureRemovesTheDataFile) {
  const SaveOptions options{.max_file_bytes = 10, .external_data = ExternalData::kExternal};
  EXPECT_NE(error_of(save_model(input(), out() / "o.onnx", options), ErrorCode::kOutput), "no error");
  EXPECT_THAT(files_in(out()), testing::IsEmpty());
}

TEST_F(PlacementTest, StreamsHaveNoDataFile) {
  const auto saved = save_model(input(), "/dev/null", {.external_data = ExternalData::kExternal});
  EXPECT_THAT(error_of(saved, ErrorCode::kOutput), HasSubstr("cannot have a data file beside it"));
  EXPECT_TRUE(save_model(input(), "/dev/null"));
}

TEST_F(PlacementTest, InPlace) {
  ASSERT_TRUE(copy_model(input(), folder_ / "m.onnx", {.external_data = ExternalData::kExternal}));
  EXPECT_THAT(files_in(folder_), ElementsAre("m.data", "m.onnx", "out"));
  const auto moved = load_model(folder_ / "m.onnx");
  ASSERT_TRUE(moved);
  EXPECT_EQ(contents(*moved), contents(input()));
}

/// A model whose one initializer, of LENGTH bytes, is a hole in the file; its last byte is 'x'.
void write_huge(const fs::path& path, uint64_t length) {
  const std::string raw_data(1, '.');
  onnx::ModelProto model;
  model.set_ir_version(10);
  model.add_opset_import()->set_version(21);
  model.mutable_graph()->set_name("g");
  auto* tensor = model.mutable_graph()->add_initializer();
  tensor->set_name("w");
  tensor->set_data_type(onnx::TensorProto::UINT8);
  tensor->add_dims(static_cast<int64_t>(length));
  tensor->set_raw_data(raw_data);
  const std::string bytes = model.SerializeAsString();
  WireSource source(std::as_bytes(std::span(bytes)));
  const auto outline = outline_model(
      source, {.takes = [](const auto*, const auto& field, const WireField&) { return field.name() == "raw_data"; }});
  ASSERT_TRUE(outline);
  std::ofstream file(path, std::ios::binary);
  const auto append = [&file](std::string_view piece) -> Status {
    file << piece;
    return {};
  };
  const std::vector<uint64_t> sizes = {length};
  ASSERT_TRUE(WireRewrite(*outline, sizes)
                  .write({[&](uint64_t at, uint64_t size) { return append(std::string_view(bytes).substr(at, size)); }, append,
                          [&](size_t) {
                            file.seekp(static_cast<std::streamoff>(length - 1), std::ios::cur);
                            return append("x");
                          }}));
}

TEST_F(PlacementTest, FilesOfMoreThanFourGigabytesAreRead) {
  const uint64_t length = (uint64_t{1} << 32) + 12345;
  write_huge(folder_ / "huge.onnx", length);
  if (fs::file_size(folder_ / "huge.onnx") < length) GTEST_SKIP() << "no room";
  const auto model = load_model(folder_ / "huge.onnx");
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_TRUE(check_model(*model));
  const auto bytes = model->tensors->bytes(model->proto.graph().initializer(0));
  ASSERT_TRUE(bytes) << bytes.error().message();
  EXPECT_EQ(bytes->size(), length);
  EXPECT_EQ(bytes->back(), std::byte{'x'});
  EXPECT_EQ(bytes->front(), std::byte{0});
  const auto saved = save_model(*model, out() / "o.onnx", {.external_data = ExternalData::kInline});
  EXPECT_THAT(error_of(saved, ErrorCode::kOutput), HasSubstr("the model would have 42949796"));
  EXPECT_THAT(error_of(save_model(*model, "/dev/null"), ErrorCode::kOutput), HasSubstr("data file beside it"));
}

}  // namespace
}  // namespace attn_opt
