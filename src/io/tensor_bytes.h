// How many bytes a tensor has, and those of a tensor that holds them itself.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <span>
#include <string>

#include "attn_opt/status.h"

namespace attn_opt {

/// Bits of an element of DATA_TYPE in raw_data, which packs them without gaps; 0 for types without a raw layout.
int bits_per_element(int data_type);

/// The bytes of TENSOR in ONNX's raw layout (4-bit and smaller types are packed).
/// Errors: kInvalidInput for strings, an undefined type, a negative dimension or more than 2^56 elements.
Expected<uint64_t> raw_byte_size(const onnx::TensorProto& tensor);

/// "tensor 'NAME'" for messages.
std::string tensor_name(const onnx::TensorProto& tensor);

/// The error for TENSOR, which has SIZE bytes where dims and type ask for EXPECTED.
tl::unexpected<Error> wrong_size(const onnx::TensorProto& tensor, uint64_t size, uint64_t expected);

/// TensorStore::bytes for a tensor that is not external.
Expected<std::span<const std::byte>> inline_bytes(const onnx::TensorProto& tensor);

}  // namespace attn_opt
