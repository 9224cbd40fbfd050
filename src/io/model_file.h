// The store of a model that was read from a file: the file's own bytes and its external data.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "attn_opt/model.h"
#include "src/io/external_data.h"
#include "src/io/file.h"
#include "src/io/wire/strip_weights.h"

namespace attn_opt {

/// A file of external data.
class DataFile {
 public:
  /// Errors: kInvalidInput, as DataFolders::resolve, and when it is not a regular file.
  static Expected<std::unique_ptr<DataFile>> find(const std::filesystem::path& location, const DataFolders& folders);

  const std::filesystem::path& location() const { return location_; }  ///< relative to the model's folder
  const std::filesystem::path& path() const { return path_; }
  uint64_t size() const { return identity_.size; }
  /// The file, if it is still the one that was judged. Error: kInvalidInput.
  Expected<FileBytes> open() const;
  /// All its bytes, mapped until the model is gone; its descriptor is not kept (a model may have thousands of files).
  Expected<std::span<const std::byte>> bytes() const;

 private:
  std::filesystem::path location_;
  std::filesystem::path path_;
  FileIdentity identity_;
  mutable std::mutex mutex_;
  mutable std::optional<FileBytes> mapped_;
};

class ModelFile final : public TensorStore {
 public:
  using Entries = google::protobuf::RepeatedPtrField<onnx::StringStringEntryProto>;
  /// A tensor whose bytes are not in the proto: external data, or raw_data that was stripped.
  struct StoredTensor {
    static constexpr size_t kModelItself = SIZE_MAX;
    size_t file = kModelItself;  ///< index in data_files(), or raw_data of the model's own file
    uint64_t offset = 0;
    uint64_t length = 0;
    Entries entries;                                            ///< as in the model's file
    std::optional<onnx::TensorProto::DataLocation> location{};  ///< as in the model's file, for raw_data
    bool is_sparse = false;                                     ///< values of a sparse tensor
    bool is_stripped() const { return file == kModelItself; }
  };

  /// raw_data of fewer than MIN_STRIPPED bytes is left in protos.
  ModelFile(FileBytes bytes, const std::filesystem::path& path, const std::vector<std::filesystem::path>& allowed,
            uint64_t min_stripped);

  /// Replaces every external location of MODEL, and every raw_data that is one of STRIPPED's tokens, by a token of this
  /// store.
  Status adopt_tensors(onnx::ModelProto& model, const StrippedModel& stripped);
  /// Puts the tokens of the model that was adopted into MODEL, which was read from the same bytes.
  void give_tokens(onnx::ModelProto& model, const StrippedModel& stripped) const;
  /// Turns the tokens in MODEL into what was there before adopt_tensors(). Error: kInvalidInput.
  Status restore_all(onnx::ModelProto& model) const;
  /// What ONNX's checker asks of raw_data, asked of the stripped tensors of MODEL, which it takes for external data.
  Status check_stripped(const onnx::ModelProto& model) const;

  Expected<std::span<const std::byte>> bytes(const onnx::TensorProto& tensor) const override;

  const FileBytes& original() const { return original_; }
  /// What the model that was read had to be repaired in; it is not the original then.
  const std::vector<std::string>& repairs() const { return repairs_; }
  void note_repairs(std::vector<std::string> repairs) { repairs_ = std::move(repairs); }
  uint64_t min_stripped() const { return min_stripped_; }
  /// Had the model tensors whose bytes are not in its proto?
  bool stores_tensors() const { return !stored_.empty(); }
  const std::filesystem::path& folder() const { return folders_.base(); }
  const std::vector<std::unique_ptr<DataFile>>& data_files() const { return data_files_; }
  /// The stored tensor whose token TENSOR bears; nullptr if it bears none.
  const StoredTensor* find(const onnx::TensorProto& tensor) const;

 private:
  Status adopt_external(onnx::TensorProto& tensor);
  Status adopt_stripped(onnx::TensorProto& tensor, const StrippedRange& range);
  void store(StoredTensor stored, onnx::TensorProto& tensor);
  Expected<size_t> data_file(const std::filesystem::path& location);

  FileBytes original_;
  uint64_t min_stripped_;
  DataFolders folders_;
  std::vector<std::unique_ptr<DataFile>> data_files_;
  std::map<std::filesystem::path, size_t> file_of_location_;
  std::vector<StoredTensor> stored_;
  std::vector<std::string> repairs_;
};

}  // namespace attn_opt
