// The external data of a model on its way into another folder.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "attn_opt/model.h"
#include "src/io/model_file.h"

namespace attn_opt {

/// Copies data files to where an output refers to them. What it created is removed again unless keep() is called.
class DataFileCopies {
 public:
  /// Copies nothing when OUTPUT is in SOURCE's folder, or a stream.
  DataFileCopies(const ModelFile& source, const std::filesystem::path& output);
  DataFileCopies(const DataFileCopies&) = delete;
  ~DataFileCopies();

  /// Makes the data files that MODEL uses available. Error: kOutput; kInvalidInput for a file that changed meanwhile.
  Status place(const onnx::ModelProto& model);
  void keep();

  /// Does a data file have another location than in the source?
  bool any_renamed() const { return !renamed_.empty(); }
  /// Puts the original entries, with the locations of the copies, in the place of the tokens.
  void restore_entries(onnx::ModelProto& model) const;

 private:
  Status place_file(size_t index);
  Expected<bool> copy_to(const DataFile& file, const std::filesystem::path& target);
  Status make_folder(const std::filesystem::path& folder);

  const ModelFile& source_;
  std::filesystem::path output_;
  bool stays_;
  std::map<size_t, std::string> renamed_;       ///< data file index -> location
  std::vector<std::filesystem::path> created_;  ///< in the order of their creation
};

}  // namespace attn_opt
