#include "src/io/wire/tensor_placement.h"

#include <unistd.h>

#include <cerrno>

#include "attn_opt/internal/model_walk.h"
#include "src/io/output_file.h"

namespace attn_opt {
namespace {

constexpr uint64_t kAlignment = 4096;  // a page: readers map tensors

void add_entry(onnx::TensorProto& tensor, const std::string& key, const std::string& value) {
  auto* entry = tensor.add_external_data();
  entry->set_key(key);
  entry->set_value(value);
}

}  // namespace

Status TensorPlacement::make_data_files(const onnx::ModelProto& model, const std::filesystem::path& output) {
  ATTN_OPT_CHECK(copies_.check_output(model));
  if (external_data_ == ExternalData::kInline) return {};
  ATTN_OPT_CHECK(copies_.place(model));
  return external_data_ == ExternalData::kExternal ? move_out(model, output) : Status();
}

Status TensorPlacement::move_out(const onnx::ModelProto& model, const std::filesystem::path& output) {
  std::vector<const StoredTensor*> moved;
  uint64_t end = 0;
  for_each_tensor(model, [&](const onnx::TensorProto& tensor) {
    const StoredTensor* stored = source_.find(tensor);
    if (!can_move(stored)) return;
    const uint64_t offset = (end + kAlignment - 1) / kAlignment * kAlignment;
    if (!new_offsets_.emplace(stored, offset).second) return;
    end = offset + stored->length;
    moved.push_back(stored);
  });
  if (moved.empty()) return {};
  if (is_stream(output)) {
    return fail(ErrorCode::kOutput, output_name(output), "cannot have a data file beside it", "give a file with -o");
  }
  ATTN_OPT_TRY(OutputFile data, OutputFile::create(output, &copies_.progress()));
  for (const StoredTensor* tensor : moved) {
    if (lseek(data.descriptor(), static_cast<off_t>(new_offsets_[tensor]), SEEK_SET) < 0) {
      return tl::unexpected<Error>(data.error(errno));
    }
    ATTN_OPT_CHECK(data.append(source_.original(), tensor->offset, tensor->length));
  }
  ATTN_OPT_TRY(new_location_, copies_.place_new(std::move(data)));
  return {};
}

bool TensorPlacement::keeps_all(const onnx::ModelProto& model) const {
  if (!new_offsets_.empty() || copies_.any_renamed()) return false;
  if (external_data_ != ExternalData::kInline) return true;
  bool all = true;
  for_each_tensor(model, [&](const onnx::TensorProto& tensor) {
    const StoredTensor* stored = source_.find(tensor);
    all = all && (stored == nullptr || stored->is_stripped());
  });
  return all;
}

const TensorPlacement::StoredTensor* TensorPlacement::restore(onnx::TensorProto& tensor) const {
  const StoredTensor* stored = source_.find(tensor);
  if (const auto moved = new_offsets_.find(stored); moved != new_offsets_.end()) {
    tensor.clear_external_data();
    add_entry(tensor, "location", new_location_);
    add_entry(tensor, "offset", std::to_string(moved->second));
    add_entry(tensor, "length", std::to_string(stored->length));
    return nullptr;
  }
  if (!stored->is_stripped() && external_data_ != ExternalData::kInline) {
    *tensor.mutable_external_data() = copies_.entries(*stored);
    return nullptr;
  }
  tensor.clear_data_location();
  tensor.clear_external_data();
  if (stored->is_stripped()) *tensor.mutable_external_data() = stored->entries;
  if (stored->location) tensor.set_data_location(*stored->location);
  return stored;
}

Expected<const FileBytes*> TensorPlacement::file_of(const StoredTensor& tensor) {
  if (tensor.is_stripped()) return &source_.original();
  if (!opened_ || opened_index_ != tensor.file) {
    ATTN_OPT_TRY(opened_, source_.data_files()[tensor.file]->open());
    opened_index_ = tensor.file;
  }
  return &*opened_;
}

}  // namespace attn_opt
