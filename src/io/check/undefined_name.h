// A misspelt name of a value, in words that say so.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>

namespace attn_opt {

/// SAID, which ONNX's checker said of PROTO, unless that is that nodes "must be topologically sorted, however input 'NAME' of
/// node ..." and nothing makes NAME: that then, with the operator that reads it and the name that was meant.
std::string naming_undefined(const std::string& said, const onnx::ModelProto& proto);

}  // namespace attn_opt
