#include "src/io/data_file_copies.h"

#include <algorithm>
#include <system_error>

#include "attn_opt/internal/model_walk.h"

namespace attn_opt {
namespace {

namespace fs = std::filesystem;
constexpr int kCopyNameAttempts = 1000;

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

/// Is there something at TARGET, be it a link to nothing?
bool is_taken(const fs::path& target) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(target, ignored));
}

bool same_content(const FileBytes& source, const fs::path& target) {
  const auto existing = FileBytes::open(target, FileBytes::Kind::kRegular);
  return existing && same_bytes(source, *existing);
}

}  // namespace

DataFileCopies::DataFileCopies(const ModelFile& source, const fs::path& output, WriteProgress& progress)
    : source_(source),
      output_(output),
      progress_(progress),
      stay_(is_stream(output) || same_file(source.folder(), folder_of(output))) {}

DataFileCopies::~DataFileCopies() {
  std::error_code ignored;
  for (auto path = created_.rbegin(); path != created_.rend(); ++path) fs::remove(*path, ignored);
}

void DataFileCopies::keep() { created_.clear(); }

std::set<size_t> DataFileCopies::used_files(const onnx::ModelProto& model) const {
  std::set<size_t> used;
  for_each_tensor(model, [this, &used](const onnx::TensorProto& tensor) {
    const auto* stored = source_.find(tensor);
    if (stored != nullptr && !stored->is_stripped()) used.insert(stored->file);
  });
  return used;
}

Status DataFileCopies::check_output(const onnx::ModelProto& model) const {
  for (const size_t index : used_files(model)) {
    if (!is_stream(output_) && same_file(source_.data_files()[index]->path(), output_)) {
      return fail(ErrorCode::kOutput, output_.string(), "holds the model's own external data", "choose another output");
    }
  }
  return {};
}

Status DataFileCopies::place(const onnx::ModelProto& model) {
  if (stay_) return {};
  for (const size_t index : used_files(model)) {
    ATTN_OPT_CHECK(place_file(index));
  }
  return {};
}

bool DataFileCopies::is_output(const fs::path& target) const {
  return target.lexically_normal() == (folder_of(output_) / output_.filename()).lexically_normal();
}

Status DataFileCopies::place_file(size_t index) {
  const DataFile& file = *source_.data_files()[index];
  for (int attempt = 0; attempt < kCopyNameAttempts; ++attempt) {
    const fs::path location = candidate(file.location(), output_.stem().string(), attempt);
    const fs::path target = folder_of(output_) / location;
    if (is_output(target)) continue;
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
  if (is_taken(target)) return same_content(source, target);
  ATTN_OPT_CHECK(make_folder(target.parent_path()));
  ATTN_OPT_TRY(OutputFile copy, OutputFile::create(target, &progress_));
  ATTN_OPT_CHECK(copy.append(source, 0, source.bytes().size()));
  return become(copy, target);
}

Expected<bool> DataFileCopies::become(OutputFile& copy, const fs::path& target) {
  ATTN_OPT_TRY(const bool is_new, copy.become_new(target));
  if (is_new) created_.push_back(target);
  return is_new;
}

Expected<std::string> DataFileCopies::place_new(OutputFile data) {
  for (int attempt = 1; attempt <= kCopyNameAttempts; ++attempt) {
    const fs::path location = candidate("data", output_.stem().string(), attempt);
    const fs::path target = folder_of(output_) / location;
    if (is_output(target)) continue;
    if (is_taken(target)) {
      ATTN_OPT_TRY(const FileBytes content, data.written());
      if (same_content(content, target)) return location.string();
      continue;
    }
    ATTN_OPT_TRY(const bool is_new, become(data, target));
    if (is_new) return location.string();
  }
  return fail(ErrorCode::kOutput, output_.string(), "there is no free name for its external data");
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
  for (auto path = missing.rbegin(); path != missing.rend(); ++path) {
    std::error_code error;
    if (fs::create_directory(*path, error)) created_.push_back(*path);
    if (error) return fail(ErrorCode::kOutput, path->string(), "cannot be created: " + error.message());
  }
  return {};
}

ModelFile::Entries DataFileCopies::entries(const ModelFile::StoredTensor& tensor) const {
  ModelFile::Entries entries = tensor.entries;
  if (const auto renamed = renamed_.find(tensor.file); renamed != renamed_.end()) {
    for (auto& entry : entries) {
      if (entry.key() == "location") entry.set_value(renamed->second);
    }
  }
  return entries;
}

}  // namespace attn_opt
