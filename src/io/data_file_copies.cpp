#include "src/io/data_file_copies.h"

#include <algorithm>
#include <cstring>
#include <ranges>
#include <set>
#include <system_error>

#include "attn_opt/model_walk.h"
#include "src/io/output_file.h"

namespace attn_opt {
namespace {

namespace fs = std::filesystem;
constexpr int kNameAttempts = 1000;

bool same_file(const fs::path& a, const fs::path& b) {
  std::error_code none;
  return fs::equivalent(a, b, none) && !none;
}

/// LOCATION for the first attempt, then STEM.NAME, STEM.2.NAME, ... in the same subfolder.
fs::path candidate(const fs::path& location, const std::string& stem, int attempt) {
  if (attempt == 0) return location;
  std::string name = stem;
  if (attempt > 1) name.append(1, '.').append(std::to_string(attempt));
  name.append(1, '.').append(location.filename().string());
  return location.parent_path() / name;
}

bool same_content(const FileBytes& source, const fs::path& target) {
  std::error_code error;
  if (fs::file_size(target, error) != source.bytes().size() || error) return false;
  const auto existing = FileBytes::open(target, FileBytes::Kind::kRegular);
  if (!existing || existing->bytes().size() != source.bytes().size()) return false;
  return source.bytes().empty() || std::memcmp(existing->bytes().data(), source.bytes().data(), source.bytes().size()) == 0;
}

}  // namespace

DataFileCopies::DataFileCopies(const ModelFile& source, const fs::path& output)
    : source_(source), output_(output), stays_(is_stream(output) || same_file(source.folder(), folder_of(output))) {}

DataFileCopies::~DataFileCopies() {
  std::error_code ignored;
  for (const fs::path& path : std::views::reverse(created_)) fs::remove(path, ignored);
}

void DataFileCopies::keep() { created_.clear(); }

Status DataFileCopies::place(const onnx::ModelProto& model) {
  std::set<size_t> used;
  for_each_tensor(model, [this, &used](const onnx::TensorProto& tensor) {
    if (const auto* external = source_.find(tensor)) used.insert(external->file);
  });
  for (const size_t index : used) {
    const DataFile& file = *source_.data_files()[index];
    if (!is_stream(output_) && same_file(file.path(), output_)) {
      return fail(ErrorCode::kOutput, output_.string(), "holds the model's own external data", "choose another output");
    }
    if (!stays_) {
      ATTN_OPT_CHECK(place_file(index));
    }
  }
  return {};
}

Status DataFileCopies::place_file(size_t index) {
  const DataFile& file = *source_.data_files()[index];
  for (int attempt = 0; attempt < kNameAttempts; ++attempt) {
    const fs::path location = candidate(file.location(), output_.stem().string(), attempt);
    const fs::path target = folder_of(output_) / location;
    if (target.lexically_normal() == (folder_of(output_) / output_.filename()).lexically_normal()) continue;
    ATTN_OPT_TRY(const bool placed, copy_to(file, target));
    if (!placed) continue;
    if (attempt > 0) renamed_[index] = location.string();
    return {};
  }
  return fail(ErrorCode::kOutput, output_.string(),
              "there is no free name for a copy of its external data '" + file.location().string() + "'");
}

Expected<bool> DataFileCopies::copy_to(const DataFile& file, const fs::path& target) {
  ATTN_OPT_TRY(const FileBytes source, file.open());
  std::error_code error;
  if (fs::exists(fs::symlink_status(target, error))) return same_content(source, target);
  ATTN_OPT_CHECK(make_folder(target.parent_path()));
  ATTN_OPT_TRY(OutputFile copy, OutputFile::create(target));
  if (const int failed = copy_all(source, copy.descriptor()); failed != 0) {
    return tl::unexpected<Error>(copy.error(failed));
  }
  ATTN_OPT_TRY(const bool is_new, copy.become_new_target());
  if (is_new) created_.push_back(target);
  return is_new;
}

/// Creates FOLDER and those above it that are missing.
Status DataFileCopies::make_folder(const fs::path& folder) {
  std::vector<fs::path> missing;
  std::error_code ignored;
  for (fs::path at = folder; !at.empty() && !fs::exists(at, ignored) && at != at.parent_path(); at = at.parent_path()) {
    missing.push_back(at);
  }
  // The output's own folder must exist already: a mistyped name is not to be created.
  if (std::ranges::find(missing, folder_of(output_)) != missing.end()) {
    return fail(ErrorCode::kOutput, output_.string(), "its folder does not exist");
  }
  for (const fs::path& path : std::views::reverse(missing)) {
    std::error_code error;
    if (fs::create_directory(path, error)) created_.push_back(path);
    if (error) return fail(ErrorCode::kOutput, path.string(), "cannot be created: " + error.message());
  }
  return {};
}

void DataFileCopies::restore_entries(onnx::ModelProto& model) const {
  for_each_tensor(model, [this](onnx::TensorProto& tensor) {
    const auto* external = source_.find(tensor);
    if (external == nullptr) return;
    *tensor.mutable_external_data() = external->entries;
    const auto renamed = renamed_.find(external->file);
    if (renamed == renamed_.end()) return;
    for (auto& entry : *tensor.mutable_external_data()) {
      if (entry.key() == "location") entry.set_value(renamed->second);
    }
  });
}

}  // namespace attn_opt
