#include "src/io/model_file.h"

#include <charconv>

#include "attn_opt/internal/model_walk.h"
#include "src/io/tensor_bytes.h"

namespace attn_opt {
namespace {

constexpr char kTokenMark = '#';

tl::unexpected<Error> located(Error error, const std::string& where) {
  error.where = error.where.empty() ? where : where + ": " + error.where;
  return tl::unexpected<Error>(std::move(error));
}

/// TENSOR has the bytes of the stored tensor number INDEX, and no other entries.
void set_token(onnx::TensorProto& tensor, size_t index) {
  tensor.clear_external_data();
  auto* token = tensor.add_external_data();
  token->set_key("location");
  token->set_value(kTokenMark + std::to_string(index));
}

}  // namespace

Expected<std::unique_ptr<DataFile>> DataFile::find(const std::filesystem::path& location, const DataFolders& folders) {
  auto file = std::make_unique<DataFile>();
  file->location_ = location;
  ATTN_OPT_TRY(file->path_, folders.resolve(location));
  ATTN_OPT_TRY(const FileBytes bytes, FileBytes::open(file->path_, FileBytes::Kind::kRegular));
  if (is_lfs_pointer(bytes))
    return fail(ErrorCode::kInvalidInput, {}, "its external data file '" + file->path_.string() + "' is a Git LFS pointer",
                kPullsLfs);
  file->identity_ = bytes.identity();
  return file;
}

Expected<FileBytes> DataFile::open() const {
  ATTN_OPT_TRY(FileBytes file, FileBytes::open(path_, FileBytes::Kind::kRegular));
  if (file.identity() != identity_) {
    return fail(ErrorCode::kInvalidInput, path_.string(), "was changed while the model was in use");
  }
  return file;
}

Expected<std::span<const std::byte>> DataFile::bytes() const {
  const std::lock_guard lock(mutex_);
  if (!mapped_) {
    ATTN_OPT_TRY(mapped_, open());
    mapped_->close_descriptor();
  }
  return mapped_->bytes();
}

ModelFile::ModelFile(FileBytes bytes, const std::filesystem::path& path, const std::vector<std::filesystem::path>& allowed,
                     uint64_t min_stripped)
    : original_(std::move(bytes)), min_stripped_(min_stripped), folders_(path, allowed) {}

Status ModelFile::adopt_tensors(onnx::ModelProto& model, const StrippedModel& stripped) {
  Status status;
  for_each_tensor(model, [&](onnx::TensorProto& tensor) {
    if (!status) return;
    const auto index = stripped.tokens.index(tensor.raw_data());
    if (index)
      status = adopt_stripped(tensor, stripped.ranges[*index]);
    else if (tensor.data_location() == onnx::TensorProto::EXTERNAL)
      status = adopt_external(tensor);
    if (!status) status = located(std::move(status.error()), tensor_name(tensor));
  });
  return status;
}

Status ModelFile::adopt_stripped(onnx::TensorProto& tensor, const StrippedRange& range) {
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL) {
    return fail(ErrorCode::kInvalidInput, {}, "is said to be external and has raw_data");
  }
  StoredTensor stored{.offset = range.offset, .length = range.length, .entries = {}, .is_sparse = range.is_sparse};
  if (tensor.has_data_location()) stored.location = tensor.data_location();
  tensor.clear_raw_data();
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  store(std::move(stored), tensor);
  return {};
}

Status ModelFile::adopt_external(onnx::TensorProto& tensor) {
  ATTN_OPT_TRY(const ExternalEntry entry, read_external_entry(tensor));
  ATTN_OPT_TRY(const size_t file, data_file(entry.location));
  const uint64_t size = data_files_[file]->size();
  if (entry.offset > size || entry.length > size - entry.offset) {
    return fail(ErrorCode::kInvalidInput, {},
                "its external data, " + std::to_string(entry.length) + " bytes from " + std::to_string(entry.offset) +
                    ", lies beyond the end of '" + entry.location.string() + "' (" + std::to_string(size) + " bytes)");
  }
  store({.file = file, .offset = entry.offset, .length = entry.length, .entries = {}}, tensor);
  return {};
}

/// Gives TENSOR the token of STORED, which takes TENSOR's entries over.
void ModelFile::store(StoredTensor stored, onnx::TensorProto& tensor) {
  stored.entries.Swap(tensor.mutable_external_data());
  set_token(tensor, stored_.size());
  stored_.push_back(std::move(stored));
}

void ModelFile::give_tokens(onnx::ModelProto& model, const StrippedModel& stripped) const {
  size_t next = 0;
  for_each_tensor(model, [&](onnx::TensorProto& tensor) {
    const bool was_stripped = stripped.tokens.index(tensor.raw_data()).has_value();
    if (!was_stripped && tensor.data_location() != onnx::TensorProto::EXTERNAL) return;
    tensor.clear_raw_data();
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    set_token(tensor, next++);
  });
}

Expected<size_t> ModelFile::data_file(const std::filesystem::path& location) {
  const auto [found, is_new] = file_of_location_.emplace(location, data_files_.size());
  if (is_new) {
    ATTN_OPT_TRY(auto file, DataFile::find(location, folders_));
    data_files_.push_back(std::move(file));
  }
  return found->second;
}

Status ModelFile::restore_all(onnx::ModelProto& model) const {
  Status status;
  for_each_tensor(model, [&](onnx::TensorProto& tensor) {
    const StoredTensor* stored = find(tensor);
    if (!status || stored == nullptr) return;
    if (stored->is_stripped()) {
      const auto raw_data = bytes(tensor);
      if (!raw_data) {
        status = tl::unexpected<Error>(raw_data.error());
        return;
      }
      tensor.set_raw_data(raw_data->data(), raw_data->size());
      tensor.clear_data_location();
      if (stored->location) tensor.set_data_location(*stored->location);
    }
    *tensor.mutable_external_data() = stored->entries;
  });
  return status;
}

const ModelFile::StoredTensor* ModelFile::find(const onnx::TensorProto& tensor) const {
  if (tensor.data_location() != onnx::TensorProto::EXTERNAL || tensor.external_data_size() != 1) return nullptr;
  const std::string& token = tensor.external_data(0).value();
  if (token.size() < 2 || token.front() != kTokenMark) return nullptr;
  size_t index = 0;
  const auto [end, error] = std::from_chars(token.data() + 1, token.data() + token.size(), index);
  if (error != std::errc() || end != token.data() + token.size() || index >= stored_.size()) return nullptr;
  return &stored_[index];
}

Expected<std::span<const std::byte>> ModelFile::bytes(const onnx::TensorProto& tensor) const {
  const StoredTensor* stored = find(tensor);
  if (stored == nullptr) return inline_bytes(tensor);
  ATTN_OPT_TRY(const uint64_t size, raw_byte_size(tensor));
  if (size != stored->length) return wrong_size(tensor, stored->length, size);
  if (stored->is_stripped()) return original_.bytes().subspan(stored->offset, stored->length);
  ATTN_OPT_TRY(const auto file, data_files_[stored->file]->bytes());
  return file.subspan(stored->offset, stored->length);
}

Status ModelFile::check_stripped(const onnx::ModelProto& model) const {
  Status status;
  for_each_tensor(model, [&](const onnx::TensorProto& tensor) {
    const StoredTensor* stored = find(tensor);
    if (!status || stored == nullptr || !stored->is_stripped()) return;
    const auto size = raw_byte_size(tensor);
    if (!size)
      status = tl::unexpected<Error>(size.error());
    else if (stored->length < *size || *size == 0)
      status = wrong_size(tensor, stored->length, *size);
  });
  return status;
}

}  // namespace attn_opt
