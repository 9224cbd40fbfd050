// Why protobuf could not parse a model: it says only that it could not.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "attn_opt/status.h"

namespace attn_opt {

/// Messages inside messages that a model may have: the limit of every protobuf reader.
inline constexpr int kMaxMessageDepth = 100;

/// The error for BYTES, which protobuf rejected as a ModelProto: truncated, nested too deep, or not ONNX at all.
Error diagnose_unparsable(std::span<const std::byte> bytes, const std::string& where);

}  // namespace attn_opt
