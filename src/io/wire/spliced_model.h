// A model in protobuf's format whose large tensors go from file to file.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

#include "attn_opt/status.h"
#include "src/io/output_file.h"
#include "src/io/wire/tensor_placement.h"
#include "src/io/wire/wire_rewrite.h"

namespace attn_opt {

/// The proto is serialized without the bytes of stored tensors; these are spliced in while it is written. The result is
/// to the byte what protobuf would write had it been given all of them.
class SplicedModel {
 public:
  /// PLACEMENT must outlive it. Error: kOutput when the model without its weights is too large or deep for protobuf.
  static Expected<SplicedModel> create(const onnx::ModelProto& model, TensorPlacement& placement, const std::string& where);

  uint64_t size() const { return WireRewrite(outline_, sizes_).size(); }
  /// Errors: kOutput; kInvalidInput when a file that tensors are read from was changed.
  Status write(OutputFile& file) const;

 private:
  /// A TensorProto: what stands before and after the content of its raw_data, if that is spliced.
  struct WrittenTensor {
    std::string before, after;
    const ModelFile::StoredTensor* raw_data = nullptr;
  };

  explicit SplicedModel(TensorPlacement& placement) : placement_(&placement) {}
  void add(onnx::TensorProto tensor, const RawDataTokens& tokens);

  TensorPlacement* placement_;
  std::string bytes_;  ///< the model, its stored tensors with their tokens
  WireOutline outline_;
  std::vector<WrittenTensor> tensors_;  ///< in the order of the outline
  std::vector<uint64_t> sizes_;         ///< of the tensors as written
};

}  // namespace attn_opt
