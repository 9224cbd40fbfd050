// Where the tensors of an output are whose bytes are not in its proto.
#pragma once

#include <onnx/onnx_pb.h>

#include <filesystem>
#include <optional>
#include <string>
#include <unordered_map>

#include "attn_opt/model_io.h"
#include "src/io/data_file_copies.h"
#include "src/io/model_file.h"

namespace attn_opt {

class TensorPlacement {
 public:
  using StoredTensor = ModelFile::StoredTensor;

  /// Both must outlive it.
  TensorPlacement(const ModelFile& source, DataFileCopies& copies, ExternalData external_data)
      : source_(source), copies_(copies), external_data_(external_data) {}

  /// Makes the data files of an output at OUTPUT: copies of those that MODEL refers to, and with kExternal a new one.
  Status make_data_files(const onnx::ModelProto& model, const std::filesystem::path& output);
  /// Moves the stripped tensors of MODEL to a new data file. Error: kOutput, also when OUTPUT is a stream.
  Status move_out(const onnx::ModelProto& model, const std::filesystem::path& output);

  /// Is every tensor of MODEL where it was?
  bool keeps_all(const onnx::ModelProto& model) const;

  bool is_stored(const onnx::TensorProto& tensor) const { return source_.find(tensor) != nullptr; }
  /// Makes TENSOR, which is stored, what is written. Returns what its raw_data is, which is not set; nullptr: it has none.
  const StoredTensor* restore(onnx::TensorProto& tensor) const;
  /// The file that TENSOR is stored in. Valid until the next call. Error: kInvalidInput when it was changed.
  Expected<const FileBytes*> file_of(const StoredTensor& tensor);

 private:
  bool can_move(const StoredTensor* tensor) const { return tensor && tensor->is_stripped() && !tensor->is_sparse; }

  const ModelFile& source_;
  DataFileCopies& copies_;
  ExternalData external_data_;
  std::string new_location_;  ///< of the new data file
  std::unordered_map<const StoredTensor*, uint64_t> new_offsets_;
  std::optional<FileBytes> opened_;
  size_t opened_index_ = StoredTensor::kModelItself;
};

}  // namespace attn_opt
