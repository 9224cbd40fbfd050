// The external data of a model on its way into another folder.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "attn_opt/model.h"
#include "src/io/model_file.h"
#include "src/io/output_file.h"

namespace attn_opt {

/// Copies data files to where an output refers to them. What it created is removed again unless keep() is called.
class DataFileCopies {
 public:
  /// Where the data files stay, nothing is copied: OUTPUT is in SOURCE's folder, or a stream. All must outlive it.
  DataFileCopies(const ModelFile& source, const std::filesystem::path& output, WriteProgress& progress);
  DataFileCopies(const DataFileCopies&) = delete;
  ~DataFileCopies();

  /// Error (kOutput): OUTPUT would take the place of a data file that MODEL uses.
  Status check_output(const onnx::ModelProto& model) const;
  /// Makes the data files that MODEL uses available. Error: kOutput; kInvalidInput for a file that changed meanwhile.
  Status place(const onnx::ModelProto& model);
  /// Gives the new data file DATA, made in OUTPUT's folder, a free name there (STEM.data, STEM.2.data, ...; that of a file
  /// of the same content is free). Returns its location. Error: kOutput.
  Expected<std::string> place_new(OutputFile data);
  void keep();
  WriteProgress& progress() { return progress_; }

  /// Are the data files used where they are?
  bool stay() const { return stay_; }
  /// Does a data file have another location than in the source?
  bool any_renamed() const { return !renamed_.empty(); }
  /// The entries of TENSOR as in the source, with the location of the copy.
  ModelFile::Entries entries(const ModelFile::StoredTensor& tensor) const;

 private:
  std::set<size_t> used_files(const onnx::ModelProto& model) const;
  bool is_output(const std::filesystem::path& target) const;
  Status place_file(size_t index);
  Expected<bool> copy_to(const DataFile& file, const std::filesystem::path& target);
  Expected<bool> become(OutputFile& copy, const std::filesystem::path& target);
  Status make_folder(const std::filesystem::path& folder);

  const ModelFile& source_;
  std::filesystem::path output_;
  WriteProgress& progress_;
  bool stay_;
  std::map<size_t, std::string> renamed_;       ///< data file index -> location
  std::vector<std::filesystem::path> created_;  ///< in the order of their creation
};

}  // namespace attn_opt
