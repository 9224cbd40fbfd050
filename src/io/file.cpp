#include "src/io/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <system_error>
#include <vector>

namespace attn_opt {
namespace {

constexpr size_t kReadChunk = size_t{1} << 20;
constexpr off_t kBlock = 4096;
// A write's size is that of the folios that the page cache takes for it: larger ones are cut from memory which a
// virtual machine may have given back to its host, and cost three times as much then.
constexpr off_t kCopyChunk = 1 << 15;

FileIdentity identity_of(const struct stat& status) {
  return {status.st_dev, status.st_ino, static_cast<uint64_t>(status.st_size),
          int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (descriptor_ >= 0) close(descriptor_);
}

std::string error_text(int error_number) { return std::generic_category().message(error_number); }

std::string input_name(const std::filesystem::path& path) { return path == "-" ? "standard input" : path.string(); }

FileBytes::FileBytes(FileBytes&& other) noexcept { *this = std::move(other); }

FileBytes& FileBytes::operator=(FileBytes&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(identity_, other.identity_);
  std::swap(mapping_, other.mapping_);
  std::swap(buffer_, other.buffer_);
  return *this;
}

FileBytes::~FileBytes() {
  if (mapping_ != nullptr) munmap(mapping_, identity_.size);
}

std::span<const std::byte> FileBytes::bytes() const {
  if (mapping_ != nullptr) return {static_cast<const std::byte*>(mapping_), identity_.size};
  return std::as_bytes(std::span(buffer_));
}

Expected<FileBytes> FileBytes::open(const std::filesystem::path& path, Kind kind) {
  const std::string where = input_name(path);
  FileBytes file;
  if (path == "-") {
    ATTN_OPT_CHECK(file.read_all(STDIN_FILENO, where));
    return file;
  }
  // Opening a pipe that has no writer must not wait when only a regular file will do.
  const int flags = O_RDONLY | O_CLOEXEC | (kind == Kind::kRegular ? O_NONBLOCK : 0);
  file.descriptor_ = FileDescriptor(::open(path.c_str(), flags));
  struct stat status{};
  if (!file.descriptor_ || fstat(file.descriptor_.get(), &status) != 0) {
    return fail(ErrorCode::kInvalidInput, where, "cannot be opened: " + error_text(errno));
  }
  if (S_ISDIR(status.st_mode)) return fail(ErrorCode::kInvalidInput, where, "is a folder, not a file");
  if (S_ISREG(status.st_mode)) {
    file.identity_ = identity_of(status);
    ATTN_OPT_CHECK(file.map(where));
    return file;
  }
  if (kind == Kind::kRegular) return fail(ErrorCode::kInvalidInput, where, "is not a regular file");
  FileDescriptor pipe;
  std::swap(pipe, file.descriptor_);
  ATTN_OPT_CHECK(file.read_all(pipe.get(), where));
  return file;
}

FileBytes FileBytes::of(std::string bytes) {
  FileBytes file;
  file.identity_.size = bytes.size();
  file.buffer_ = std::move(bytes);
  return file;
}

bool FileBytes::is_unchanged() const {
  if (!descriptor_) return true;
  struct stat status{};
  return fstat(descriptor_.get(), &status) == 0 && identity_of(status) == identity_;
}

Status FileBytes::map(const std::string& where) {
  if (identity_.size == 0) return {};
  void* mapping = mmap(nullptr, identity_.size, PROT_READ, MAP_PRIVATE, descriptor_.get(), 0);
  if (mapping == MAP_FAILED) {
    return fail(ErrorCode::kInvalidInput, where, "cannot be mapped: " + error_text(errno));
  }
  mapping_ = mapping;
  return {};
}

Status FileBytes::read_all(int descriptor, const std::string& where) {
  size_t size = 0;
  while (true) {
    if (size > INT_MAX) return fail(ErrorCode::kLimit, where, "carries more than 2 GiB", "give a file");
    if (buffer_.size() - size < kReadChunk) buffer_.resize(std::max(2 * buffer_.size(), 2 * kReadChunk));
    const ssize_t count = read(descriptor, buffer_.data() + size, buffer_.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(ErrorCode::kInvalidInput, where, "cannot be read: " + error_text(errno));
    if (count == 0) break;
    size += static_cast<size_t>(count);
  }
  buffer_.resize(size);
  identity_.size = size;
  return {};
}

int write_all(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(descriptor, bytes.data(), std::min<size_t>(bytes.size(), size_t{1} << 30));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return 0;
}

int read_exactly(int descriptor, uint64_t offset, std::span<std::byte> to) {
  while (!to.empty()) {
    const ssize_t count = pread(descriptor, to.data(), to.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    if (count == 0) return ENODATA;
    offset += static_cast<uint64_t>(count);
    to = to.subspan(static_cast<size_t>(count));
  }
  return 0;
}

bool is_lfs_pointer(const FileBytes& file) {
  constexpr std::string_view kBegin = "version https://git-lfs.github.com/spec/";
  const auto bytes = file.bytes();
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()).starts_with(kBegin);
}

bool same_bytes(const FileBytes& a, const FileBytes& b) {
  const uint64_t size = a.identity().size;
  if (b.identity().size != size) return false;
  std::vector<std::byte> of_a(kReadChunk), of_b(kReadChunk);
  for (uint64_t at = 0; at < size; at += of_a.size()) {
    of_a.resize(std::min<uint64_t>(kReadChunk, size - at));
    of_b.resize(of_a.size());
    if (read_exactly(a.descriptor().get(), at, of_a) != 0) return false;
    if (read_exactly(b.descriptor().get(), at, of_b) != 0) return false;
    if (of_a != of_b) return false;
  }
  return true;
}

namespace {

bool is_hard(int error_number) {
  return error_number == ENOSPC || error_number == EDQUOT || error_number == EIO || error_number == EFBIG;
}

/// A range on its way into a file.
struct RangeCopy {
  int from, to;
  off_t at, end;  ///< in FROM
  off_t target;   ///< in TO

  void advance(off_t count) {
    at += count;
    target += count;
  }
};

/// Copies within the kernel, as far as the two files allow. Returns 0 or an errno value.
int share(RangeCopy& copy) {
  while (copy.at < copy.end) {
    off_t from = copy.at;
    const auto rest = static_cast<size_t>(copy.end - copy.at);
    const ssize_t copied = copy_file_range(copy.from, &from, copy.to, nullptr, rest, 0);
    if (copied < 0 && errno == EINTR) continue;
    if (copied < 0 && is_hard(errno)) return errno;
    if (copied <= 0) return 0;  // not between these two
    copy.advance(copied);
  }
  return 0;
}

int read_and_write(RangeCopy& copy) {
  std::vector<std::byte> chunk(static_cast<size_t>(std::min(kCopyChunk, copy.end - copy.at)));
  while (copy.at < copy.end) {
    // Writes that end where a chunk of the target ends cost a third less than others.
    const off_t count = std::min(copy.end - copy.at, kCopyChunk - copy.target % kCopyChunk);
    const auto part = std::span(chunk).first(static_cast<size_t>(count));
    const int failed = read_exactly(copy.from, static_cast<uint64_t>(copy.at), part);
    if (failed != 0) return failed;
    if (const int unwritten = write_all(copy.to, part); unwritten != 0) return unwritten;
    copy.advance(count);
  }
  return 0;
}

}  // namespace

int copy_range(const FileBytes& from, uint64_t offset, uint64_t size, int to) {
  if (!from.descriptor()) return write_all(to, from.bytes().subspan(offset, size));
  const off_t target = std::max<off_t>(lseek(to, 0, SEEK_CUR), 0);  // no pipe has a place
  const auto begin = static_cast<off_t>(offset);
  RangeCopy copy{from.descriptor().get(), to, begin, begin + static_cast<off_t>(size), target};
  if ((begin - target) % kBlock == 0) {
    if (const int failed = share(copy); failed != 0) return failed;
  }
  return read_and_write(copy);
}

}  // namespace attn_opt
