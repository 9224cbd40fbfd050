// Where a tensor's external data is, as its external_data entries say, and where it may be.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "attn_opt/status.h"

namespace attn_opt {

struct ExternalEntry {
  std::filesystem::path location;  ///< relative, lexically normal, without ".."
  uint64_t offset = 0;
  uint64_t length = 0;  ///< of the tensor, whether given or not
};

/// Reads and judges the entries of TENSOR without looking at any file.
Expected<ExternalEntry> read_external_entry(const onnx::TensorProto& tensor);

/// The folders that a model's external data may lie in.
class DataFolders {
 public:
  /// MODEL_PATH "-": the current folder.
  DataFolders(const std::filesystem::path& model_path, const std::vector<std::filesystem::path>& allowed);

  /// The folder that locations are relative to, as the user named it.
  const std::filesystem::path& base() const { return base_; }

  /// The file of LOCATION, without links. Errors: kInvalidInput: it does not exist, or lies in none of the folders.
  Expected<std::filesystem::path> resolve(const std::filesystem::path& location) const;

 private:
  std::filesystem::path base_;
  std::vector<std::filesystem::path> roots_;
};

}  // namespace attn_opt
