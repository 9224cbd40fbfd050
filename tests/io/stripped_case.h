// Models with a tensor in every place that can hold one, and a model that protobuf read whole to compare with.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/io/wire/strip_weights.h"
#include "tests/io/io_test.h"

namespace attn_opt {

class StrippedTest : public IoTest {
 protected:
  /// Valid ONNX; its tensors' bytes are all different.
  static onnx::ModelProto tensors_everywhere();

  /// What protobuf makes of BYTES; nullopt if it rejects them.
  static std::optional<onnx::ModelProto> parse_whole(const std::string& bytes);
  /// What the project makes of BYTES with everything stripped, the raw_data filled in again.
  Expected<onnx::ModelProto> parse_and_fill(const std::string& bytes);
  /// PROTO as protobuf writes it, maps sorted.
  static std::string bytes_of(const onnx::ModelProto& proto);

  /// Loads BYTES with all raw_data stripped that is at least MIN_BYTES long.
  Expected<Model> load_stripped(const std::string& bytes, uint64_t min_bytes = 1);
  static size_t count_stored(const Model& model);
};

/// A length-delimited field with NUMBER below 16 and CONTENT of less than 128 bytes.
std::string short_field(int number, const std::string& content);

}  // namespace attn_opt
