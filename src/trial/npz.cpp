#include "src/trial/npz.h"

#include <minizip/unzip.h>
#include <minizip/zip.h>

#include <algorithm>
#include <memory>

#include "src/io/output_file.h"
#include "src/trial/npy.h"

namespace attn_opt {
namespace {

constexpr size_t kChunk = size_t{1} << 24;  // the library counts in 32 bits

using Archive = std::unique_ptr<void, decltype(&unzClose)>;

Expected<std::string> member_name(const std::filesystem::path& path, void* archive) {
  unz_file_info64 info;
  char name[4096];
  if (unzGetCurrentFileInfo64(archive, &info, name, sizeof name, nullptr, 0, nullptr, 0) != UNZ_OK ||
      info.size_filename >= sizeof name) {
    return fail(ErrorCode::kInvalidInput, path.string(), "is a damaged archive");
  }
  return std::string(name, info.size_filename);
}

bool read_all(void* archive, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const int got = unzReadCurrentFile(archive, bytes.data(), static_cast<unsigned>(std::min(bytes.size(), kChunk)));
    if (got <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(got));
  }
  return true;
}

Expected<Tensor> read_member(const std::string& where, void* archive, DataType declared, size_t memory_limit) {
  if (unzOpenCurrentFile(archive) != UNZ_OK) return fail(ErrorCode::kInvalidInput, where, "cannot be read");
  auto tensor =
      read_npy(where, [archive](std::span<std::byte> bytes) { return read_all(archive, bytes); }, declared, memory_limit);
  unzCloseCurrentFile(archive);
  return tensor;
}

Status write_member(const OutputFile& file, void* archive, const std::string& name, const Tensor& tensor) {
  const auto failed = [&] { return tl::unexpected<Error>(file.error(errno)); };
  if (zipOpenNewFileInZip64(archive, (name + ".npy").c_str(), nullptr, nullptr, 0, nullptr, 0, nullptr, 0, 0, 1) != ZIP_OK) {
    return failed();
  }
  const auto write = [&](std::string_view bytes) -> Status {
    for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), kChunk))) {
      const auto size = static_cast<unsigned>(std::min(bytes.size(), kChunk));
      if (zipWriteInFileInZip(archive, bytes.data(), size) != ZIP_OK) return failed();
    }
    return {};
  };
  ATTN_OPT_CHECK(write_npy(name, tensor, write));
  if (zipCloseFileInZip(archive) != ZIP_OK) return failed();
  return {};
}

}  // namespace

Expected<std::map<std::string, Tensor>> read_npz(const std::filesystem::path& path,
                                                 const std::map<std::string, DataType>& declared, size_t memory_limit) {
  const Archive archive(unzOpen64(path.c_str()), unzClose);
  if (archive == nullptr) {
    return fail(ErrorCode::kInvalidInput, path.string(), "cannot be read as an archive of arrays (.npz)");
  }
  std::map<std::string, Tensor> arrays;
  for (int found = unzGoToFirstFile(archive.get()); found == UNZ_OK; found = unzGoToNextFile(archive.get())) {
    ATTN_OPT_TRY(std::string name, member_name(path, archive.get()));
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    const auto type = declared.find(name);
    ATTN_OPT_TRY(Tensor tensor,
                 read_member(path.string() + ": " + name, archive.get(),
                             type != declared.end() ? type->second : onnx::TensorProto::UNDEFINED, memory_limit));
    memory_limit -= std::min(memory_limit, tensor.bytes().size());
    arrays.emplace(std::move(name), std::move(tensor));
  }
  return arrays;
}

Status write_npz(const std::filesystem::path& path, const std::vector<std::pair<std::string, Tensor>>& arrays) {
  ATTN_OPT_TRY(OutputFile file, OutputFile::create(path));
  const std::string opened = "/proc/self/fd/" + std::to_string(file.descriptor());
  void* archive = zipOpen64(opened.c_str(), APPEND_STATUS_CREATE);
  if (archive == nullptr) return tl::unexpected<Error>(file.error(errno));
  Status written;
  for (const auto& [name, tensor] : arrays) {
    if (written) written = write_member(file, archive, name, tensor);
  }
  if (zipClose(archive, nullptr) != ZIP_OK && written) written = tl::unexpected<Error>(file.error(errno));
  ATTN_OPT_CHECK(written);
  return file.replace_target();
}

}  // namespace attn_opt
