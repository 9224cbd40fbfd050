// Imports of operator sets that fusing leaves without a user.
#pragma once

#include <onnx/onnx_pb.h>

#include <set>
#include <string>

namespace attn_opt {

/// The domains other than ai.onnx that nodes of MODEL are of, its local functions, or what those import.
std::set<std::string> used_domains(const onnx::ModelProto& model);

/// Drops the imports of domains in USED_BEFORE that nothing in MODEL uses. One that the model came with unused stays.
void drop_imports(const std::set<std::string>& used_before, onnx::ModelProto& model);

}  // namespace attn_opt
