// POSIX files: descriptors that close themselves, files as bytes, copying between descriptors.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include "attn_opt/status.h"

namespace attn_opt {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int descriptor) : descriptor_(descriptor) {}
  FileDescriptor(FileDescriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~FileDescriptor();

  int get() const { return descriptor_; }
  explicit operator bool() const { return descriptor_ >= 0; }

 private:
  int descriptor_ = -1;
};

/// What tells a file from another, or from itself after a change.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  uint64_t size = 0;
  int64_t modified_ns = 0;
  bool operator==(const FileIdentity&) const = default;
};

/// The bytes of a file: mapped if it is a regular one, else (pipes) read to the end.
class FileBytes {
 public:
  enum class Kind { kAny, kRegular };

  /// "-" is standard input. Errors: kInvalidInput; kLimit for a pipe that carries more than 2 GiB.
  static Expected<FileBytes> open(const std::filesystem::path& path, Kind kind = Kind::kAny);

  /// What is in memory already.
  static FileBytes of(std::string bytes);

  FileBytes() = default;
  FileBytes(FileBytes&& other) noexcept;
  FileBytes& operator=(FileBytes&& other) noexcept;
  ~FileBytes();

  std::span<const std::byte> bytes() const;
  const FileIdentity& identity() const { return identity_; }
  const FileDescriptor& descriptor() const { return descriptor_; }  ///< none for what was read from a pipe
  void close_descriptor() { descriptor_ = FileDescriptor(); }
  /// Is the file that was opened still as it was then?
  bool is_unchanged() const;

 private:
  Status map(const std::string& where);
  Status read_all(int descriptor, const std::string& where);

  FileDescriptor descriptor_;
  FileIdentity identity_;
  void* mapping_ = nullptr;
  std::string buffer_;
};

/// Text for an errno value.
std::string error_text(int error_number);
/// PATH for messages: "standard input" for "-".
std::string input_name(const std::filesystem::path& path);

/// Those of type int return 0 or an errno value.
int write_all(int descriptor, std::span<const std::byte> bytes);
/// Reads as many bytes as TO has from OFFSET on; ENODATA if the file ends before.
int read_exactly(int descriptor, uint64_t offset, std::span<std::byte> to);
/// A checkout without Git LFS has a short text in the place of a large file: is FILE one? It is fetched by kPullsLfs.
bool is_lfs_pointer(const FileBytes& file);
inline constexpr const char* kPullsLfs = "run `git lfs pull`";
/// Do two regular files have the same bytes? Reads without mapping, to the first difference.
bool same_bytes(const FileBytes& a, const FileBytes& b);
/// Appends SIZE bytes of FROM to a file without mapping them: within the kernel, which may share blocks, where blocks of
/// these two files can correspond; else by reading and writing, which is then faster.
int copy_range(const FileBytes& from, uint64_t offset, uint64_t size, int to);

}  // namespace attn_opt
