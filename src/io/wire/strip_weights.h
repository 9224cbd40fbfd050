// Parsing a model without its weights.
//
// raw_data of some size is left where it is: the model is parsed from its bytes without them, in which a token stands for
// each, so protobuf never reads, allocates or copies a weight. Who gets the proto turns the tokens into what it likes.
#pragma once

#include <onnx/onnx_pb.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attn_opt/status.h"
#include "src/io/file.h"

namespace attn_opt {

/// Where the raw_data of a tensor is in the model's file.
struct StrippedRange {
  uint64_t offset = 0;
  uint64_t length = 0;
  bool is_sparse = false;  ///< values of a sparse tensor
};

/// Byte strings that stand for raw_data. No file can hold one: they are other ones in every process.
class RawDataTokens {
 public:
  RawDataTokens();
  std::string token(uint64_t index) const;
  /// The index of the token RAW_DATA is, if it is one.
  std::optional<uint64_t> index(const std::string& raw_data) const;

 private:
  std::array<char, 16> mark_;
};

struct StrippedModel {
  onnx::ModelProto proto;
  std::vector<StrippedRange> ranges;  ///< token index -> range
  RawDataTokens tokens;
};

/// Parses the ModelProto in FILE, without raw_data of MIN_BYTES and more. The indices of sparse tensors, which ONNX's
/// checker reads, stay. Error (kInvalidInput, kLimit): as outline_model; kLimit when more than 2 GiB are left.
Expected<StrippedModel> parse_stripped(const FileBytes& file, uint64_t min_bytes, const std::string& where);

}  // namespace attn_opt
