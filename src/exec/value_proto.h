// Values as ONNX's test data holds them: a serialized TensorProto, SequenceProto or OptionalProto.
#pragma once

#include <span>
#include <string>

#include "attn_opt/tensor.h"

namespace attn_opt {

struct NamedValue {
  std::string name;  ///< may be empty
  Tensor value;      ///< holds its bytes itself
};

/// BYTES as a value of TYPE: a tensor, a sequence of tensors, or an optional of either.
/// Errors: kInvalidInput (no such value), kUnsupported (another type).
Expected<NamedValue> parse_value(std::span<const std::byte> bytes, const onnx::TypeProto& type);

}  // namespace attn_opt
