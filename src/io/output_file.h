// A file that appears whole or not at all.
#pragma once

#include <filesystem>
#include <string>

#include "attn_opt/status.h"
#include "src/io/file.h"
#include "src/io/write_progress.h"

namespace attn_opt {

/// "standard output" for "-".
std::string output_name(const std::filesystem::path& path);
/// Is OUTPUT written to directly: standard output, a pipe, what lies below /dev and /proc?
bool is_stream(const std::filesystem::path& output);
/// The folder that OUTPUT is in.
std::filesystem::path folder_of(const std::filesystem::path& output);
/// Is the folder of OUTPUT there? Error: kOutput, with the command that makes it.
Status check_folder(const std::filesystem::path& output);
/// Makes FOLDER and those that it lies in, if they are not there. Error: kOutput.
Status make_folder(const std::filesystem::path& folder);

/// Writes go to a nameless file in the target's folder (a named one where the file system has none such), which gets
/// its name when it is complete. Dropped before that, nothing of it remains.
class OutputFile {
 public:
  /// PROGRESS, which must outlive it, is told of what is appended. Error: kOutput, also when TARGET is a folder.
  static Expected<OutputFile> create(const std::filesystem::path& target, WriteProgress* progress = nullptr);

  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  int descriptor() const { return descriptor_.get(); }

  /// Both return the error that says why nothing more can be written.
  Status append(std::string_view bytes);
  /// SIZE bytes of FROM. Error: kInvalidInput when FROM was changed since it was opened.
  Status append(const FileBytes& from, uint64_t offset, uint64_t size);
  /// What was written so far, to be read. Error: kOutput.
  Expected<FileBytes> written() const;

  /// Takes the place of what was at TARGET, with its permissions. On disk when it returns. Error: kOutput.
  Status replace_target();
  /// Becomes TARGET, in the same folder. 'false' if there is something already; it may then be tried with another one.
  Expected<bool> become_new(const std::filesystem::path& target);

  /// The error "TARGET: cannot be written: REASON".
  Error error(int error_number) const;

 private:
  OutputFile(std::filesystem::path target, WriteProgress* progress) : target_(std::move(target)), progress_(progress) {}
  void open_temporary();
  bool link_to(const std::filesystem::path& name) const;
  Status give_temporary_name();
  bool move_to_new() const;
  void start_writeback();
  void sync_folder() const;

  std::filesystem::path target_;
  WriteProgress* progress_;
  std::filesystem::path temporary_;  ///< empty while it has no name
  FileDescriptor descriptor_;
  off_t writeback_begun_ = 0;  ///< so much of the file is on its way to disk
};

}  // namespace attn_opt
