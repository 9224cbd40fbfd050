// What a batch has finished: a file for each model below FOLDER, so that batches of several machines can share it.
#pragma once

#include <filesystem>
#include <string>

#include "attn_opt/status.h"
#include "src/cli/commands/batch_inputs.h"
#include "src/report/report_stream.h"

namespace attn_opt {

class BatchState {
 public:
  /// FINGERPRINT: what, beside a model itself, decides what becomes of it.
  BatchState(std::filesystem::path folder, std::string fingerprint)
      : folder_(std::move(folder)), fingerprint_(std::move(fingerprint)) {}

  /// Where the JSON report of INPUT is.
  std::filesystem::path report_path(const BatchInput& input) const;
  /// Was INPUT, as it is now, finished with this fingerprint, and is what it wrote to OUTPUT, if anything, still there? What
  /// could not be read, written or run within limits never counts as finished: another try may do better.
  bool is_finished(const BatchInput& input, const std::filesystem::path& output) const;
  /// Forgets INPUT, whose run is about to begin. Error: kOutput.
  Status begin(const BatchInput& input) const;
  /// OUTCOME is that of INPUT when it had STAMP, and OUTPUT what it wrote, if anything; its report is at report_path() already.
  /// Error: kOutput.
  Status enter(const BatchInput& input, const std::string& stamp, const std::filesystem::path& output,
               const ModelOutcome& outcome) const;
  /// What was entered, and the report.
  ModelOutcome outcome(const BatchInput& input) const;

 private:
  std::filesystem::path path_of(const BatchInput& input, const char* kind) const;

  std::filesystem::path folder_;
  std::string fingerprint_;
};

/// Changes when the file or folder at PATH does.
std::string stamp_of(const std::filesystem::path& path);
/// Changes when the model at PATH does, or a file beside it that holds its weights.
std::string stamp_of_model(const std::filesystem::path& path);

}  // namespace attn_opt
