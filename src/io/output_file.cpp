#include "src/io/output_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <system_error>

namespace attn_opt {
namespace {

namespace fs = std::filesystem;
constexpr mode_t kNewFileMode = 0666;  // less the process's umask
constexpr int kNameAttempts = 100;
constexpr off_t kWritebackStep = 32 << 20, kWritebackUnit = 2 << 20;

fs::path random_sibling(const fs::path& target) {
  std::random_device random;
  return folder_of(target) / (".attn-opt-" + std::to_string(random()) + ".tmp");
}

std::string descriptor_path(int descriptor) { return "/proc/self/fd/" + std::to_string(descriptor); }

}  // namespace

std::string output_name(const fs::path& path) { return path == "-" ? "standard output" : path.string(); }

bool is_stream(const fs::path& output) {
  if (output == "-") return true;
  std::error_code ignored;
  const std::string absolute = fs::absolute(output, ignored).lexically_normal().string();
  if (absolute.starts_with("/dev/") && !absolute.starts_with("/dev/shm/")) return true;
  if (absolute.starts_with("/proc/")) return true;
  const fs::file_status status = fs::status(output, ignored);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

fs::path folder_of(const fs::path& output) {
  const fs::path folder = output.parent_path();
  return folder.empty() ? fs::path(".") : folder;
}

Status make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return fail(ErrorCode::kOutput, folder.string(), "cannot be made: " + error.message());
  return {};
}

Status check_folder(const fs::path& output) {
  std::error_code none;
  const std::string folder = folder_of(output).string();
  if (is_stream(output) || fs::exists(folder, none)) return {};
  return fail(ErrorCode::kOutput, output.string(), "cannot be written: there is no folder " + folder,
              "mkdir -p '" + folder + "' makes it");
}

Expected<OutputFile> OutputFile::create(const fs::path& target, WriteProgress* progress) {
  OutputFile file(target, progress);
  if (target == "-") {
    file.descriptor_ = FileDescriptor(dup(STDOUT_FILENO));
  } else if (is_stream(target)) {
    file.descriptor_ = FileDescriptor(open(target.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  } else {
    std::error_code ignored;
    if (fs::is_directory(target, ignored)) return fail(ErrorCode::kOutput, target.string(), "is a folder, not a file");
    ATTN_OPT_CHECK(check_folder(target));
    file.open_temporary();
  }
  if (!file.descriptor_) return tl::unexpected<Error>(file.error(errno));
  return file;
}

/// Leaves the reason in errno if it fails.
void OutputFile::open_temporary() {
  // A nameless file gets its name through /proc.
  if (access("/proc/self/fd", X_OK) == 0) {
    descriptor_ = FileDescriptor(open(folder_of(target_).c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, kNewFileMode));
  }
  for (int i = 0; i < kNameAttempts && !descriptor_; ++i) {
    const fs::path name = random_sibling(target_);
    descriptor_ = FileDescriptor(open(name.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, kNewFileMode));
    if (descriptor_)
      temporary_ = name;
    else if (errno != EEXIST)
      return;
  }
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : target_(std::move(other.target_)),
      progress_(other.progress_),
      temporary_(std::exchange(other.temporary_, {})),
      descriptor_(std::move(other.descriptor_)),
      writeback_begun_(other.writeback_begun_) {}

OutputFile::~OutputFile() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

Error OutputFile::error(int error_number) const {
  return Error{ErrorCode::kOutput, output_name(target_), "cannot be written: " + error_text(error_number), ""};
}

Status OutputFile::append(std::string_view bytes) {
  const int failed = write_all(descriptor(), std::as_bytes(std::span(bytes)));
  if (progress_) progress_->add(bytes.size());
  return failed == 0 ? Status() : tl::unexpected<Error>(error(failed));
}

Status OutputFile::append(const FileBytes& from, uint64_t offset, uint64_t size) {
  int failed = 0;
  for (uint64_t done = 0; done < size && failed == 0; done += kWritebackStep) {
    const uint64_t step = std::min<uint64_t>(size - done, kWritebackStep);
    failed = copy_range(from, offset + done, step, descriptor());
    start_writeback();
    if (progress_) progress_->add(step);
  }
  if (!from.is_unchanged()) {
    return fail(ErrorCode::kInvalidInput, output_name(target_), "what it is made from was changed meanwhile", "try again");
  }
  return failed == 0 ? Status() : tl::unexpected<Error>(error(failed));
}

/// Lets what is written go to disk meanwhile, so that little is left for fsync.
void OutputFile::start_writeback() {
  const off_t place = lseek(descriptor(), 0, SEEK_CUR);
  const off_t end = place - place % kWritebackUnit;  // a page that is still being written would have to wait
  if (end - writeback_begun_ < kWritebackStep) return;
  sync_file_range(descriptor(), writeback_begun_, end - writeback_begun_, SYNC_FILE_RANGE_WRITE);
  writeback_begun_ = end;
}

Expected<FileBytes> OutputFile::written() const {
  auto file = FileBytes::open(temporary_.empty() ? fs::path(descriptor_path(descriptor())) : temporary_);
  if (!file) file.error().code = ErrorCode::kOutput;
  return file;
}

/// Gives a nameless file NAME, unless there is something. Leaves the reason in errno if it fails.
bool OutputFile::link_to(const fs::path& name) const {
  return linkat(AT_FDCWD, descriptor_path(descriptor()).c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

Status OutputFile::give_temporary_name() {
  if (!temporary_.empty()) return {};
  for (int i = 0; i < kNameAttempts; ++i) {
    const fs::path name = random_sibling(target_);
    if (link_to(name)) {
      temporary_ = name;
      return {};
    }
    if (errno != EEXIST) break;
  }
  return tl::unexpected<Error>(error(errno));
}

Status OutputFile::replace_target() {
  if (is_stream(target_)) return {};
  struct stat replaced{};
  if (stat(target_.c_str(), &replaced) == 0) fchmod(descriptor(), replaced.st_mode & 0777);
  ATTN_OPT_TRY(const bool is_new, become_new(target_));
  if (is_new) return {};
  ATTN_OPT_CHECK(give_temporary_name());
  if (rename(temporary_.c_str(), target_.c_str()) != 0) return tl::unexpected<Error>(error(errno));
  temporary_.clear();
  sync_folder();
  return {};
}

Expected<bool> OutputFile::become_new(const fs::path& target) {
  target_ = target;
  if (fsync(descriptor()) != 0) return tl::unexpected<Error>(error(errno));
  // A nameless file gets its name in one step: whatever ends the process, nothing is left beside the target.
  if (!(temporary_.empty() ? link_to(target_) : move_to_new())) {
    if (errno == EEXIST) return false;
    return tl::unexpected<Error>(error(errno));
  }
  temporary_.clear();
  sync_folder();
  return true;
}

/// Leaves the reason in errno if it fails.
bool OutputFile::move_to_new() const {
  if (renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, target_.c_str(), RENAME_NOREPLACE) == 0) return true;
  if (errno == EEXIST) return false;
  // A file system without that rename: a hard link never replaces either.
  if (link(temporary_.c_str(), target_.c_str()) != 0) return false;
  unlink(temporary_.c_str());
  return true;
}

// The file itself is safe by now, so a folder that cannot be synced is no failure.
void OutputFile::sync_folder() const {
  const FileDescriptor folder(open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder) fsync(folder.get());
}

}  // namespace attn_opt
